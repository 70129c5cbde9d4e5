"""What tests share: waiting for a condition, processes that are ended by pid, repositories."""
