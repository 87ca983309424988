package tools

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"muster/budget"
	"muster/tools/workspace"
)

// reads remembers what this agent has read: the hash of each file's whole content, by its real path. A later write over other content is a conflict.
type reads struct {
	mu   sync.Mutex
	seen map[string][sha256.Size]byte
}

// realPath follows symlinks, so that a file has one name here; it opens nothing.
func realPath(t *workspace.Tree, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.Dir, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

func (r *reads) remember(t *workspace.Tree, path string, sum [sha256.Size]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string][sha256.Size]byte{}
	}
	r.seen[realPath(t, path)] = sum
}

func (r *reads) known(t *workspace.Tree, path string) (sum [sha256.Size]byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum, ok = r.seen[realPath(t, path)]
	return sum, ok
}

type readArgs struct {
	Path   string `json:"path" jsonschema:"file, workspace-relative or absolute"`
	Offset int64  `json:"offset,omitempty" min:"1" jsonschema:"first line, default 1"`
	Limit  int64  `json:"limit,omitempty" min:"1" max:"read_lines" jsonschema:"lines, default: the maximum"`
}

func readFile() Tool {
	return define("read_file", Read,
		"Reads a text file with line numbers (`12→text`, which are not in the file) and says which lines of how many; offset and limit read any size in windows. "+
			"Long lines are cut, binary files refused.",
		runRead)
}

func runRead(ctx context.Context, c *Call, a readArgs) (Output, error) {
	f, size, err := openText(c, a.Path)
	if err != nil {
		return Output{}, err
	}
	defer f.Close()
	name := shownName(shorten(relName(c, a.Path), 200))
	if whole := a.Offset == 0 && a.Limit == 0; whole && size > int64(c.Caps.ReadAdmitBytes) {
		return Output{}, fail(Input, "%s has %d bytes, a read of a whole file takes at most %d; give offset and limit to read it in windows, or use grep",
			name, size, c.Caps.ReadAdmitBytes)
	}
	a.Offset = max(a.Offset, 1)
	if a.Limit == 0 {
		a.Limit = int64(c.Caps.ReadLines)
	}
	out := Output{}
	if instructs(c.Tree, a.Path) {
		out.Untrusted = c.outside(name)
	}
	w := window{from: a.Offset, limit: a.Limit, room: c.Room, lineChars: c.Caps.ReadLineChars}
	sum, err := w.read(ctx, f)
	if err != nil {
		return Output{}, fmt.Errorf("read %s: %w", name, err)
	}
	switch {
	case w.kind != "":
		return Output{}, fail(Input, "%s is binary (%s, %d bytes); it cannot be shown as text", name, w.kind, size)
	case w.lines > 0 && a.Offset > w.lines:
		return Output{}, fail(Input, "offset %d is past the end: %s has %s; give an offset of at most %d", a.Offset, name, plural(w.lines, "line"), w.lines)
	}
	c.set.reads.remember(c.Tree, a.Path, sum)
	out.Facts.Seen = w.bytes
	out.Text = w.render(name, c.Room, &out.Facts)
	return out, nil
}

// relName is the path of a result: relative to the root, with /.
func relName(c *Call, path string) string {
	if rel, err := c.Tree.Rel(path); err == nil {
		return rel
	}
	return path
}

// openText opens a regular file and knows the folder's message.
func openText(c *Call, path string) (workspace.File, int64, error) {
	if info, err := c.Tree.Stat(path); err == nil && info.IsDir() {
		return nil, 0, fail(Input, "%s is a folder; list_dir shows what it holds", shownName(shorten(relName(c, path), 200)))
	}
	f, err := c.Tree.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// window collects some lines of a stream and counts all of it, in memory of the lines it shows.
type window struct {
	from, limit int64
	room        int // characters that may be kept in all
	lineChars   int

	enc          encoding
	kind         string // type of a binary file
	rows         []windowRow
	full         bool // the characters ran out before limit
	bytes, lines int64
	crlf, lf     int64
	unfinished   bool // no newline at the end

	buf   *bufio.Reader
	carry []byte // bytes of a letter that a piece ended in
	row   windowRow
}

type windowRow struct {
	text   []byte
	chars  int // of the whole line
	kept   int // of text
	shown  string
	lastCR bool // the line so far ends in \r, which may be half of its end
}

// read goes through all of r: the hash is of every byte of it.
func (w *window) read(ctx context.Context, r io.Reader) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	count := &counted{r: r, h: h, ctx: ctx}
	raw := bufio.NewReaderSize(count, 64<<10)
	head, err := raw.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return sum, err
	}
	if w.enc, w.kind = sniff(head); w.kind != "" {
		return sum, nil
	}
	if _, err := raw.Discard(len(boms[w.enc])); err != nil {
		return sum, err
	}
	w.buf = raw
	if d := w.enc.decoded(raw); d != io.Reader(raw) {
		w.buf = bufio.NewReaderSize(d, 64<<10)
	}
	if err := w.scan(); err != nil {
		return sum, err
	}
	w.bytes = count.n
	h.Sum(sum[:0])
	return sum, nil
}

// counted hashes and counts what passes, and ends with its context.
type counted struct {
	r   io.Reader
	h   hash.Hash
	n   int64
	ctx context.Context
}

func (c *counted) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.r.Read(p)
	c.h.Write(p[:n])
	c.n += int64(n)
	return n, err
}

func (w *window) scan() error {
	for {
		piece, err := w.buf.ReadSlice('\n')
		ended := err == nil
		if len(piece) > 0 {
			w.piece(piece, ended)
		}
		switch {
		case errors.Is(err, io.EOF):
			if w.unfinished {
				w.endLine()
			}
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// piece takes a part of a line, which ends it or not.
func (w *window) piece(p []byte, ended bool) {
	w.unfinished = true
	wanted := w.inWindow()
	if !ended {
		w.row.lastCR = p[len(p)-1] == '\r'
		if wanted {
			w.keep(p)
		}
		return
	}
	p = p[:len(p)-1]
	if crlf := bytes.HasSuffix(p, []byte{'\r'}) || len(p) == 0 && w.row.lastCR; crlf {
		w.crlf++
		if len(p) > 0 {
			p = p[:len(p)-1]
		} else {
			w.dropCR()
		}
	} else {
		w.lf++
	}
	if wanted {
		w.keep(p)
	}
	w.unfinished = false
	w.endLine()
}

func (w *window) inWindow() bool {
	next := w.lines + 1
	return !w.full && next >= w.from && next-w.from < w.limit
}

// dropCR takes back a \r that turned out to be half of the line's end.
func (w *window) dropCR() {
	if w.row.chars == 0 {
		return
	}
	if w.row.chars == w.row.kept {
		w.row.text = bytes.TrimSuffix(w.row.text, []byte{'\r'})
		w.row.kept--
	}
	w.row.chars--
}

// keep adds to the line's text up to its cap, and counts all of it. A letter may come in two pieces.
func (w *window) keep(p []byte) {
	if len(w.carry) > 0 {
		p = append(w.carry, p...)
		w.carry = nil
	}
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			w.carry = bytes.Clone(p)
			return
		}
		_, n := utf8.DecodeRune(p)
		w.add(p[:n])
		p = p[n:]
	}
}

func (w *window) add(letter []byte) {
	w.row.chars++
	if w.row.kept < w.lineChars && w.row.kept < w.room {
		w.row.text = append(w.row.text, letter...)
		w.row.kept++
	}
}

func (w *window) endLine() {
	if w.inWindow() {
		for _, b := range w.carry { // an unfinished letter: each byte shows as one
			w.add([]byte{b})
		}
		w.row.shown = string(w.row.text)
		w.rows = append(w.rows, w.row)
		w.room -= w.row.kept + 2
		w.full = w.room <= 0
	}
	w.carry, w.row = nil, windowRow{}
	w.lines++
}

// render writes the rows that fit, then what must be said, in at most room characters.
func (w *window) render(name string, room int, facts *Facts) string {
	if w.lines == 0 {
		if w.bytes > 0 {
			return fmt.Sprintf("%s holds nothing but a byte order mark (%s)", name, w.enc)
		}
		return fmt.Sprintf("%s exists and is empty (0 bytes)", name)
	}
	for shown := len(w.rows); ; shown-- {
		text, over := w.attempt(name, shown, room, facts)
		if over <= 0 {
			return text
		}
		if shown == 1 { // one line that is longer than the room: cut it further
			r := &w.rows[0]
			r.kept = max(1, r.kept-over-len("… (+9999999999 chars)"))
			r.shown = headChars(r.shown, r.kept)
			shown++
		}
	}
}

// attempt renders the first shown rows, and says by how many characters that is over room.
func (w *window) attempt(name string, shown, room int, facts *Facts) (text string, over int) {
	facts.Cuts = facts.Cuts[:0]
	last := w.from + int64(shown) - 1
	width := len(strconv.FormatInt(last, 10))
	var b strings.Builder
	fmt.Fprintf(&b, "lines %d–%d of %d\n", w.from, last, w.lines)
	var controls, invalid, long int
	for i := range shown {
		r := &w.rows[i]
		line, c, bad := visible(r.shown)
		controls, invalid = controls+c, invalid+bad
		fmt.Fprintf(&b, "%*d→%s", width, w.from+int64(i), line)
		if cut := r.chars - r.kept; cut > 0 {
			long++
			fmt.Fprintf(&b, "… (+%d chars)", cut)
			facts.Cuts = append(facts.Cuts, budget.Cut{What: fmt.Sprintf("line %d", w.from+int64(i)), Unit: "characters", Shown: int64(r.kept), Total: int64(r.chars)})
		}
		b.WriteByte('\n')
	}
	if last < w.lines {
		cut := budget.Cut{What: name, Unit: "lines", Shown: int64(shown), Total: w.lines, Next: last + 1}
		facts.Cuts = append(facts.Cuts, cut)
		fmt.Fprintln(&b, cut.Notice(fmt.Sprintf("the next offset is %d", last+1)))
	}
	for _, note := range w.notes(controls, invalid, long) {
		fmt.Fprintf(&b, "[%s]\n", note)
	}
	text = strings.TrimSuffix(b.String(), "\n")
	return text, budget.Chars(text) - room
}

// notes is what the numbered lines do not show of the file's bytes.
func (w *window) notes(controls, invalid, long int) []string {
	var notes []string
	if w.enc != plainUTF8 {
		notes = append(notes, "encoding: "+w.enc.String()+"; edit_file keeps it")
	}
	if w.crlf > 0 && w.lf == 0 {
		notes = append(notes, "line ends: CRLF; edit_file keeps them")
	} else if w.crlf > 0 {
		notes = append(notes, fmt.Sprintf("line ends: mixed, %d CRLF and %d LF; edit_file keeps them", w.crlf, w.lf))
	}
	if w.unfinished {
		notes = append(notes, "no newline at the end of the file")
	}
	if invalid > 0 {
		notes = append(notes, plural(int64(invalid), "invalid UTF-8 byte")+" shown as U+FFFD")
	}
	if controls > 0 {
		notes = append(notes, plural(int64(controls), "control character")+" shown as pictures, such as ␛")
	}
	if long > 0 {
		notes = append(notes, plural(int64(long), "line")+" cut short; grep shows the text around a match")
	}
	return notes
}
