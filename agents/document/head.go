package document

import "strings"

// Head splits a text that begins with a head of fields between two lines of ---. fields is the YAML, with an empty line for each line before it, so
// that Read and ReadLoose name the lines of the text; body is what follows, and line where that begins, from 1. A byte order mark and empty lines
// before the head are passed over, and lines may end in \r\n. Without a whole head ok is false and body all of the text.
func Head(text string) (fields, body string, line int, ok bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	var b strings.Builder
	begun := false
	rest := text
	for line = 1; rest != ""; line++ {
		var row string
		row, rest, _ = strings.Cut(rest, "\n")
		switch {
		case isRule(row) && begun:
			return b.String(), rest, line + 1, true
		case isRule(row):
			begun, row = true, ""
		case !begun && strings.TrimSpace(row) != "":
			return "", text, 1, false
		case !begun:
			row = ""
		}
		b.WriteString(row + "\n")
	}
	return "", text, 1, false
}

// isRule says that a line is --- and nothing else but blanks behind it.
func isRule(line string) bool { return strings.TrimRight(line, " \t") == "---" }
