package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"muster/budget"
)

var (
	// ErrFull: the project has as much as it may; nothing was saved.
	ErrFull = errors.New("the project has no room for another memory")
	// ErrNotFound: no such memory. Nothing was changed.
	ErrNotFound = errors.New("no such memory")
	// ErrAmbiguous: an abbreviated id names several memories. Nothing was changed.
	ErrAmbiguous = errors.New("id names several memories")
)

// Memory is one sentence that an agent saved. Make one with New.
type Memory struct {
	ID       string    `json:"id"` // of its text: 32 hexadecimal digits
	Text     string    `json:"text"`
	Tags     []string  `json:"tags,omitempty"`
	By       Author    `json:"by"`
	Saved    time.Time `json:"saved"`
	Revision uint64    `json:"-"` // on the board: the greater is the newer
}

// Author is who saved a memory.
type Author struct {
	Job     string `json:"job,omitempty"`   // id; empty for a person
	Title   string `json:"title,omitempty"` // of the job, or what a person used
	Profile string `json:"profile,omitempty"`
}

// Limits bound the memories of one project.
type Limits struct {
	Items int
	Bytes int64 // of text and tags
}

// Saved is what came of a save.
type Saved struct {
	Memory          // as it stands on the board: of one that was known, who saved it first
	Known  bool     // it was there before
	Added  []string // tags that a known one did not have before
	Like   []Memory // others with almost the same words, the likest first, at most likeMost
	Total  int      // memories of the project now
}

// New makes a memory: one line without control characters, bidi marks and what has no picture; each tag likewise, and once whatever its case.
func New(text string, tags []string, by Author) Memory {
	m := Memory{Text: line(text), By: by}
	for _, t := range tags {
		if t = line(t); t != "" && !has(m.Tags, t) {
			m.Tags = append(m.Tags, t)
		}
	}
	sum := sha256.Sum256([]byte(Normal(m.Text)))
	m.ID = hex.EncodeToString(sum[:16])
	return m
}

func has(tags []string, tag string) bool {
	return slices.ContainsFunc(tags, func(t string) bool { return strings.EqualFold(t, tag) })
}

func line(s string) string { return budget.Preview(s, len(s)+1) }

// Chars is how many characters text and tags have.
func (m Memory) Chars() int {
	n := budget.Chars(m.Text)
	for _, t := range m.Tags {
		n += budget.Chars(t)
	}
	return n
}

// Bytes is what counts against Limits.Bytes.
func (m Memory) Bytes() int64 {
	n := len(m.Text)
	for _, t := range m.Tags {
		n += len(t)
	}
	return int64(n)
}

// Normal is what is equal of two texts that say the same: small letters, one blank between words, no full stop at the end. Other signs count: C and
// C++ are two.
func Normal(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(norm.NFC.String(text))), " ")
	if short := strings.TrimRight(text, ".!。！ "); short != "" {
		return short
	}
	return text
}

// Among is what saving m comes to where list is known, and whether anything is to be written.
func (m Memory) Among(list []Memory) (s Saved, write bool) {
	s = Saved{Memory: m, Total: len(list)}
	i := slices.IndexFunc(list, func(o Memory) bool { return o.ID == m.ID })
	if i < 0 {
		s.Like, s.Total = m.Like(list), s.Total+1
		return s, true
	}
	old := list[i]
	if old.Saved.Equal(m.Saved) && old.By == m.By { // a write whose answer got lost
		s.Revision, s.Like = old.Revision, m.Like(list)
		return s, false
	}
	s.Memory, s.Known = old, true
	s.Tags = slices.Clone(old.Tags)
	for _, t := range m.Tags {
		if !has(old.Tags, t) {
			s.Tags, s.Added = append(s.Tags, t), append(s.Added, t)
		}
	}
	return s, len(s.Added) > 0
}

// Admit says whether m fits beside list, or in place of what it was there. ErrFull, with the figures.
func (l Limits) Admit(m Memory, list []Memory) error {
	items, bytes := 1, m.Bytes()
	for _, o := range list {
		if o.ID != m.ID {
			items, bytes = items+1, bytes+o.Bytes()
		}
	}
	switch {
	case items > l.Items:
		return fmt.Errorf("%w: it has %d, the most that it may have", ErrFull, items-1)
	case bytes > l.Bytes:
		return fmt.Errorf("%w: it would have %d bytes of them, at most %d are kept", ErrFull, bytes, l.Bytes)
	}
	return nil
}

const (
	likeMost  = 3   // memories that Like names
	likeShare = 0.6 // of the words of both that two have in common
)

// Like lists those of list that have most of their words in common with m, the likest first.
func (m Memory) Like(list []Memory) []Memory {
	type scored struct {
		Memory
		share float64
	}
	mine := words(m.Text)
	var near []scored
	for _, o := range list {
		if o.ID == m.ID {
			continue
		}
		theirs, both := words(o.Text), 0
		for w := range theirs {
			if mine[w] {
				both++
			}
		}
		if share := float64(both) / float64(max(1, len(mine)+len(theirs)-both)); share >= likeShare {
			near = append(near, scored{o, share})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int {
		switch {
		case a.share > b.share:
			return -1
		case a.share < b.share:
			return 1
		}
		return 0
	})
	var out []Memory
	for _, s := range near[:min(likeMost, len(near))] {
		out = append(out, s.Memory)
	}
	return out
}

// words is the set of a text's words, and of the pairs of letters where a script has no blanks.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) }) {
		pairs := pairs(w)
		if len(pairs) == 0 {
			set[w] = true
		}
		for _, p := range pairs {
			set[p] = true
		}
	}
	return set
}

// Find is the memory whose id is or begins with id, of at least six digits.
func Find(list []Memory, id string) (Memory, error) {
	id = strings.ToLower(strings.TrimSpace(id))
	var found []Memory
	for _, m := range list {
		if m.ID == id {
			return m, nil
		}
		if len(id) >= shortID && strings.HasPrefix(m.ID, id) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return Memory{}, ErrNotFound
	case 1:
		return found[0], nil
	}
	return Memory{}, ErrAmbiguous
}

const shortID = 6 // digits that an abbreviated id has at least
