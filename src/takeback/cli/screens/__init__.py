"""What fills the whole terminal: the picker, and what it draws on."""
