// Package memory is what agents of a project want each other to know: single sentences that outlive their run and their machine. Package board
// keeps them (Board.Remember, Memories, Forget); this package says what one is and finds those that a question is about.
//
// # A memory
//
// A memory is one line of text with tags, who saved it and when. Its id comes from its text as Normal writes it (small letters, single blanks, no
// full stop), so the same sentence has the same id whoever saves it. Sentences that only share most of their words (Like) stay apart: "A calls B"
// and "B calls A" are two facts, and which of two that disagree is right no program can tell.
//
// # Search
//
// Search ranks by BM25, in an SQLite FTS5 index that is made of the memories at hand and dropped again: the board is the only store, so no index
// can be older than it. A thousand memories take some 20 ms. Words are compared by their stems (deploys, deployed), without regard to case and
// accents; scripts without blanks between words (Chinese, Japanese, Thai and others) by pairs of letters. A word of the query that holds
// other signs (tools/memory.go, don't) is looked for as the phrase of its parts. A query that finds nothing so, an emoji for one, is looked for
// letter by letter. Nothing in a query is an operator.
package memory
