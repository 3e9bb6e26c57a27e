"""Estimates how long people read the texts of a book: a step for each chapter, and a result with a type."""

from dataclasses import dataclass
from typing import List

from execution_service import Run, workflow


@dataclass
class Chapter:
    title: str
    text: str


@dataclass
class Book:
    chapters: List[Chapter]
    words_per_minute: int = 200


@dataclass
class ReadingTime:
    words: int
    minutes: float


def count_words(text: str) -> int:
    return len(text.split())


@workflow(id="reading-time", version="1.0.0", title="Estimate the time to read a book", retry=3)
def reading_time(run: Run, book: Book) -> ReadingTime:
    words = 0
    for number, chapter in enumerate(book.chapters, start=1):
        words += run.step(f"chapter {number}", count_words, chapter.text)
        run.progress(100 * number / len(book.chapters), chapter.title)
    run.log(f"Counted {words} words.")
    return ReadingTime(words, round(words / book.words_per_minute, 2))
