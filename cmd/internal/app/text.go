package app

import (
	"fmt"
	"io"
	"strings"

	"muster/budget"
)

// Field is a one-line text for a terminal, of at most limit characters.
func Field(s string, limit int) string { return budget.Preview(s, limit) }

// Body is a text of many lines for a terminal: no control characters but newline and tab, nothing that turns or hides what stands there.
func Body(s string) string { return budget.Shown(s) }

// Note writes one line for a person to w, sanitised and without secrets, whatever is put into it. What comes from elsewhere and has a place of
// its own in it is a Field.
func Note(w io.Writer, format string, a ...any) {
	fmt.Fprintln(w, line(Hidden().String(fmt.Sprintf(format, a...))))
}

// line keeps a text on one line, and its blanks as they are.
func line(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Body(s))
}
