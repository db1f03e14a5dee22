"""The live page: runs while they happen, over HTTP and server-sent events, on this machine unless asked otherwise."""
