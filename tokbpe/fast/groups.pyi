THREAD_TEXT_SIZE: int

class Groups:
    def work(self) -> None: ...
