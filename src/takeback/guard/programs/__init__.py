"""Programs whose effect depends on more than their subcommand: paths, hosts, code, SQL."""
