package tools

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"muster/budget"
)

// expectation is what a step must show; every field that is set must hold.
type expectation struct {
	OK            *bool             `json:"ok"`
	Contains      []string          `json:"contains"`
	ContainsAny   []string          `json:"contains_any"`
	NotContains   []string          `json:"not_contains"`
	ContainsRE    []string          `json:"contains_re"`
	NotContainsRE []string          `json:"not_contains_re"`
	Numbered      map[string]string `json:"numbered"`
	NotNumbered   []int             `json:"not_numbered"`
	MaxCountRE    *countRE          `json:"max_count_re"`
	MaxChars      int               `json:"max_chars"`
	MaxBytes      int               `json:"max_bytes"`
	MaxLineChars  int               `json:"max_line_chars"`
	MinSeconds    float64           `json:"min_seconds"`
	MaxSeconds    float64           `json:"max_seconds"`
	File          *caseFile         `json:"file"`
	Files         []caseFile        `json:"files"`
	Unchanged     []string          `json:"unchanged"`
	Absent        []string          `json:"absent"`
	Exists        []string          `json:"exists"`
	Link          *caseLink         `json:"link"`
	Tree          *caseTree         `json:"tree"`
	ContainsFile  *fileRE           `json:"contains_file_re"`
	PostWait      float64           `json:"post_wait"`
	Post          string            `json:"post"`
}

type countRE struct {
	RE string `json:"re"`
	N  int    `json:"n"`
}

type caseFile struct {
	Path   string  `json:"path"`
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64"`
}

type caseLink struct{ Path, To string }

// caseTree is the whole workspace: its files, and its links with where they lead.
type caseTree struct {
	Files []caseFile        `json:"files"`
	Links map[string]string `json:"links"`
}

// check compares the workspace with what it must be.
func (c caseTree) check(vars map[string]string, fault func(string, ...any)) {
	want := map[string]string{}
	for _, f := range c.Files {
		want[f.Path] = string(f.Base64)
		if f.Text != nil {
			want[f.Path] = *f.Text
		}
	}
	for name, to := range c.Links {
		want[name] = "link to " + expand(to, vars)
	}
	err := filepath.WalkDir(vars["WS"], func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(vars["WS"], p)
		got := content(p)
		if text, ok := want[rel]; !ok || text != got {
			fault("%s holds %q, want %q (%v)", rel, clip(got), clip(text), ok)
		}
		delete(want, rel)
		return err
	})
	if err != nil || len(want) > 0 {
		fault("missing are %v: %v", slices.Collect(maps.Keys(want)), err)
	}
}

type fileRE struct{ Path, RE string }

// outcome is what a step did.
type outcome struct {
	reply  Reply
	took   time.Duration
	vars   map[string]string
	before map[string]string
}

func mustMatch(re string) *regexp.Regexp { return regexp.MustCompile(re) }

// numberedLines are the lines of a reply in the form of read_file.
func numberedLines(text string) map[string]string {
	out := map[string]string{}
	for l := range strings.SplitSeq(text, "\n") {
		if n, line, ok := strings.Cut(l, "→"); ok {
			if n = strings.TrimSpace(n); n != "" && strings.Trim(n, "0123456789") == "" {
				out[n] = line
			}
		}
	}
	return out
}

// always holds of every reply.
func (o outcome) always() (faults []string) {
	if !utf8.ValidString(o.reply.Text) {
		faults = append(faults, "the text is not valid UTF-8")
	}
	if strings.ContainsAny(o.reply.Text, "\x00\x1b") {
		faults = append(faults, "the text holds NUL or an escape byte")
	}
	return faults
}

func (e expectation) check(o outcome) (faults []string) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	if e.OK != nil && *e.OK != o.reply.OK {
		fault("ok is %v, want %v", o.reply.OK, *e.OK)
	}
	e.checkText(o.reply.Text, fault)
	if e.MaxSeconds == 0 {
		e.MaxSeconds = 150
	}
	if s := o.took.Seconds(); s < e.MinSeconds || s > e.MaxSeconds {
		fault("took %.1f s, want %.1f to %.1f", s, e.MinSeconds, e.MaxSeconds)
	}
	e.checkFiles(o, fault)
	if e.Post != "" {
		if out, err := e.post(o.vars); err != nil {
			fault("post %q: %v\n%s", e.Post, err, out)
		}
	}
	return faults
}

// post runs the shell check, again and again for as long as the case allows.
func (e expectation) post(vars map[string]string) (out string, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Duration(e.PostWait * float64(time.Second))); ; <-tick.C {
		if out, err = shell(e.Post, vars); err == nil || time.Now().After(end) {
			return out, err
		}
	}
}

func (e expectation) checkText(text string, fault func(string, ...any)) {
	for _, want := range e.Contains {
		if !strings.Contains(text, want) {
			fault("the text lacks %q", want)
		}
	}
	anyOf := len(e.ContainsAny) == 0
	for _, want := range e.ContainsAny {
		anyOf = anyOf || strings.Contains(text, want)
	}
	if !anyOf {
		fault("the text holds none of %q", e.ContainsAny)
	}
	for _, no := range e.NotContains {
		if strings.Contains(text, no) {
			fault("the text holds %q", no)
		}
	}
	for _, re := range e.ContainsRE {
		if !mustMatch(re).MatchString(text) {
			fault("the text does not match %s", re)
		}
	}
	for _, re := range e.NotContainsRE {
		if m := mustMatch(re).FindString(text); m != "" {
			fault("the text matches %s: %q", re, m)
		}
	}
	if e.MaxCountRE != nil {
		if n := len(mustMatch(e.MaxCountRE.RE).FindAllString(text, -1)); n > e.MaxCountRE.N {
			fault("%s matches %d times, at most %d allowed", e.MaxCountRE.RE, n, e.MaxCountRE.N)
		}
	}
	lines := numberedLines(text)
	for n, want := range e.Numbered {
		if got, ok := lines[n]; !ok || got != want {
			fault("line %s is %q, want %q", n, got, want)
		}
	}
	for _, n := range e.NotNumbered {
		if got, ok := lines[strconv.Itoa(n)]; ok {
			fault("line %d is shown: %q", n, got)
		}
	}
	if e.MaxChars == 0 {
		e.MaxChars = 21000
	}
	if n := budget.Chars(text); n > e.MaxChars {
		fault("the text has %d characters, at most %d allowed", n, e.MaxChars)
	}
	if e.MaxBytes > 0 && len(text) > e.MaxBytes {
		fault("the text has %d bytes, at most %d allowed", len(text), e.MaxBytes)
	}
	for l := range strings.SplitSeq(text, "\n") {
		if e.MaxLineChars > 0 && budget.Chars(l) > e.MaxLineChars {
			fault("a line has %d characters, at most %d allowed", budget.Chars(l), e.MaxLineChars)
		}
	}
}

func (e expectation) checkFiles(o outcome, fault func(string, ...any)) {
	files := e.Files
	if e.File != nil {
		files = append(files, *e.File)
	}
	for _, f := range files {
		want := string(f.Base64)
		if f.Text != nil {
			want = *f.Text
		}
		if got := content(place(f.Path, o.vars)); got != want {
			fault("%s holds %q, want %q", f.Path, clip(got), clip(want))
		}
	}
	for _, p := range e.Unchanged {
		if got := content(place(p, o.vars)); got != o.before[p] {
			fault("%s changed to %q", p, clip(got))
		}
	}
	for _, p := range e.Absent {
		if _, err := os.Lstat(place(p, o.vars)); err == nil {
			fault("%s exists", p)
		}
	}
	for _, p := range e.Exists {
		if _, err := os.Lstat(place(p, o.vars)); err != nil {
			fault("%s: %v", p, err)
		}
	}
	if e.Link != nil {
		if got := content(place(e.Link.Path, o.vars)); got != "link to "+e.Link.To {
			fault("%s is %q, want a link to %s", e.Link.Path, clip(got), e.Link.To)
		}
	}
	if e.Tree != nil {
		e.Tree.check(o.vars, fault)
	}
	if e.ContainsFile != nil {
		if got := content(place(e.ContainsFile.Path, o.vars)); !mustMatch(e.ContainsFile.RE).MatchString(got) {
			fault("%s holds %q, which does not match %s", e.ContainsFile.Path, clip(got), e.ContainsFile.RE)
		}
	}
}
