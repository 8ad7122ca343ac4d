"""Words: frozen values and pure functions; nothing here touches a disk or a clock."""
