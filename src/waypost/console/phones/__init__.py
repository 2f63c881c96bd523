"""The phones page: handsets with their chats, and every action of a simulated phone."""
