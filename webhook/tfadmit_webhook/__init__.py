"""The admission server and the pure logic that it shares with the command line."""
