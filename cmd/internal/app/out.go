package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"muster/budget"
)

// JSONFlag asks for JSON on stdout.
func JSONFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

// Out prints results: JSON, or text for people. Both come from the same values.
type Out struct {
	W        io.Writer
	JSON     bool
	Terminal bool // W is one: texts are sanitised and tables fit its width
	Width    int  // columns; 0: no limit
}

// Stdout is the Out of a command.
func Stdout(asJSON bool) Out {
	o := Out{W: os.Stdout, JSON: asJSON, Terminal: term.IsTerminal(int(os.Stdout.Fd()))}
	if o.Terminal {
		o.Width, _, _ = term.GetSize(int(os.Stdout.Fd()))
	}
	return o
}

// Value prints one value as indented JSON.
func (o Out) Value(v any) error { return o.encode(v, "  ") }

// Line prints one value as a line of JSON.
func (o Out) Line(v any) error { return o.encode(v, "") }

func (o Out) encode(v any, indent string) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	_, err := io.WriteString(o.W, escapeJSON(b.String()))
	return err
}

// escapeJSON writes characters that a terminal would obey or hide as \u escapes: the value stays the same, and is safe to look at.
func escapeJSON(s string) string {
	clean := strings.IndexFunc(s, obeyed)
	if clean < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 64)
	b.WriteString(s[:clean])
	for _, r := range s[clean:] {
		switch {
		case !obeyed(r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// obeyed never holds for the newlines and blanks of the JSON text itself.
func obeyed(r rune) bool {
	return r >= 0x7f && (budget.Hidden(r) || r == '\u2028' || r == '\u2029')
}

// Text prints a body as it is into a file or pipe, sanitised on a terminal, with a newline at its end there.
func (o Out) Text(s string) error {
	if o.Terminal {
		if s = Body(s); s != "" && !strings.HasSuffix(s, "\n") {
			s += "\n"
		}
	}
	_, err := io.WriteString(o.W, s)
	return err
}

// Table prints rows under a head, columns aligned; the last column takes what the terminal has left.
func (o Out) Table(head []string, rows [][]string) error {
	_, err := io.WriteString(o.W, strings.Join(FormatTable(head, rows, o.Width), "\n")+"\n")
	return err
}

// FormatTable lays out a table, a line a row, into a file as on a terminal; width 0: as wide as it gets. A nil head is left out.
func FormatTable(head []string, rows [][]string, width int) []string {
	all := make([][]string, 0, len(rows)+1)
	if head != nil {
		all = append(all, head)
	}
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = line(c)
		}
		all = append(all, cells)
	}
	var wide []int
	for _, r := range all {
		for i, c := range r {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], displaywidth.String(c))
		}
	}
	lines := make([]string, 0, len(all))
	for _, r := range all {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", wide[i]-displaywidth.String(c)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if width > 0 {
			line = displaywidth.TruncateString(line, width, "…")
		}
		lines = append(lines, line)
	}
	return lines
}
