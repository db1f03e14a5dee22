"""Other people's training loops on our core. Each module is an extra of its own and is imported by name where used."""
