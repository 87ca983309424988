package budget

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Chars counts Unicode code points; an invalid byte counts as one.
func Chars(s string) int { return utf8.RuneCountInString(s) }

// Cut says what a cut left out, for the facts of a call. Shown and Total are in Unit ("characters", "bytes", "lines", "matches", …).
type Cut struct {
	What  string `json:"what"`
	Unit  string `json:"unit"`
	Shown int64  `json:"shown"`
	Total int64  `json:"total"`
	Next  int64  `json:"next,omitempty"` // offset that gets the rest, 0 for none
}

// Notice is the one sentence of a cut: "[… showing <shown> of <total> <unit> of <what>, <total-shown> left out; <rest>]".
// rest names the call that gets the rest.
func (c Cut) Notice(rest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[… showing %d of %d %s", c.Shown, c.Total, c.Unit)
	if c.What != "" {
		b.WriteString(" of " + c.What)
	}
	fmt.Fprintf(&b, ", %d left out", c.Total-c.Shown)
	if rest != "" {
		b.WriteString("; " + rest)
	}
	b.WriteByte(']')
	return b.String()
}

// Clip is the exit clamp: s unchanged and a nil Cut when it has at most limit characters; else head share (percent of
// what is kept), the notice, the tail; the whole (notice included) has at most limit characters. A cut is moved to a
// line's end where one is near. Where limit has no room for the whole notice, the notice is shortened: first without
// what, then without rest, at last to an ellipsis.
func Clip(s string, limit, headPercent int, what, rest string) (string, *Cut) {
	if len(s) <= limit {
		return s, nil
	}
	total := Chars(s)
	if total <= limit {
		return s, nil
	}
	cut := Cut{What: what, Unit: "characters", Total: int64(total)}
	// Room is set aside for the longest that the numbers can be, so that the real ones, which depend on the room, fit.
	widest := Cut{What: what, Unit: cut.Unit, Shown: cut.Total, Total: 2 * cut.Total}
	forms := widest.forms(rest)
	level := 0
	for !forms[level].fits(limit) {
		level++
	}
	head, tail := split(s, limit-Chars(forms[level].text)-joints, headPercent)
	cut.Shown = int64(Chars(head) + Chars(tail))
	return join(head, cut.forms(rest)[level].text, tail), &cut
}

// form is one way to write a notice. It is good where 1/share of the limit stays for the text beside it; share 0 asks
// for nothing.
type form struct {
	text  string
	share int
}

// forms are the ways to write the notice of c, from the fullest to none at all, which always fits.
func (c Cut) forms(rest string) []form {
	bare := Cut{Unit: c.Unit, Shown: c.Shown, Total: c.Total}
	return []form{
		{c.Notice(rest), 4},
		{bare.Notice(rest), 4},
		{bare.Notice(""), 4},
		{fmt.Sprintf("[…%d/%d]", c.Shown, c.Total), 0},
		{"…", 0},
		{"", 0},
	}
}

func (f form) fits(limit int) bool {
	if f.share == 0 {
		return Chars(f.text) <= limit || f.text == ""
	}
	return Chars(f.text)+joints <= limit-limit/f.share
}

// joints is the room for a newline before the notice and one after it.
const joints = 2

func join(head, notice, tail string) string {
	var b strings.Builder
	b.Grow(len(head) + len(notice) + len(tail) + joints)
	b.WriteString(head)
	if head != "" && !strings.HasSuffix(head, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(notice)
	if tail != "" {
		b.WriteByte('\n')
	}
	b.WriteString(tail)
	return b.String()
}

// split keeps at most room characters of s: headPercent of them from its start and the others from its end.
func split(s string, room, headPercent int) (head, tail string) {
	room = max(0, room)
	headRoom := int(int64(room) * int64(min(100, max(0, headPercent))) / 100)
	head = toLineEnd(s[:forward(s, headRoom)])
	tail = s[backward(s, room-headRoom):]
	return head, fromLineStart(tail)
}

// forward returns the length in bytes of the first n characters of s.
func forward(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// backward returns where the last n characters of s begin.
func backward(s string, n int) int {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return i
}

// near is the share of a part, and the most bytes of it, that are given up to end at the end of a line.
const (
	nearShare = 8
	nearBytes = 1000
)

// toLineEnd gives up the unfinished last line of a head where it is short.
func toLineEnd(head string) string {
	give := min(len(head)/nearShare, nearBytes)
	if i := strings.LastIndexByte(head[len(head)-give:], '\n'); i >= 0 {
		return head[:len(head)-give+i+1]
	}
	return head
}

// fromLineStart gives up the begun first line of a tail where it is short.
func fromLineStart(tail string) string {
	give := min(len(tail)/nearShare, nearBytes)
	if i := strings.IndexByte(tail[:give], '\n'); i >= 0 {
		return tail[i+1:]
	}
	return tail
}
