"""What people read: sentences and lists, made from codes and facts."""
