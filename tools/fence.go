package tools

import (
	"crypto/rand"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster/budget"
	"muster/tools/workspace"
)

// What a tool brings from outside (a page, another server's answer, another agent's words, a file that is written to instruct agents) is
// fenced for the model: data, whatever it says of itself. A handler sets Output.Untrusted to where the text comes from, and takes the room
// of the fence off its own with outside; the exit writes
//
//	<untrusted source="agent 3f6a" mark="k3f9x2mw">
//	…
//	</untrusted k3f9x2mw>
//
// The mark is new and random for each call, so nothing that was written before can hold it; text that looks like a fence is changed all the
// same, since a model does not compare marks letter by letter.
//
// Fenced are results of other agents, memories, skills that came with the files, and files whose names make them instructions. Listings, matches and what commands print are not: each of
// their lines stands in a form of the tool's own, most of them are the agent's own work, and a fence around everything would be one around
// nothing. The system prompt says of all of it that it is material.
const (
	fenceOpen  = `<untrusted source="%s" mark="%s">`
	fenceClose = `</untrusted %s>`

	markChars   = 8 // of 5 bits
	sourceChars = 200
	fenceWord   = "untrusted"
)

// outside says that the text of a call comes from source: there is less room for it. The result is for Output.Untrusted.
func (c *Call) outside(source string) string {
	c.Room -= fenceChars(source)
	return source
}

// fenceChars is how many characters the fence of a source takes, with what may have to be said of the text within.
func fenceChars(source string) int {
	widest := hiddenNote(1 << 30)
	return budget.Chars(fmt.Sprintf(fenceOpen+"\n\n"+fenceClose+"\n", sourceLabel(source), "", "")) + 2*markChars + budget.Chars(widest) + 1
}

// fenced puts a text between marks that it does not hold.
func fenced(source, text string) string {
	mark := ""
	for mark == "" || strings.Contains(text, mark) {
		mark = strings.ToLower(rand.Text()[:markChars])
	}
	return fmt.Sprintf(fenceOpen+"\n%s\n"+fenceClose, sourceLabel(source), mark, text, mark)
}

// Fenced is a text from outside between marks, for what reaches a model by another way than a tool.
func Fenced(source, text string) string {
	text, _ = defused(budget.Plain(text))
	return fenced(source, text)
}

// sourceLabel is a source as it stands within quotes.
func sourceLabel(source string) string {
	source = strings.NewReplacer(`"`, "'", "<", "‹", ">", "›").Replace(source)
	text, _ := defused(budget.Preview(source, sourceChars))
	return text
}

// defused is a text without what only a model sees (tags, and variation selectors of the same plane, which can spell out words), and with
// another bracket where it looks like a fence. It counts what it left out.
func defused(s string) (text string, hidden int) {
	if !strings.ContainsFunc(s, func(r rune) bool { return smuggles(r) || bracket(r) }) {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case smuggles(r):
			hidden++
		case bracket(r) && fenceLike(s[i:]):
			b.WriteRune('‹')
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), hidden
}

func smuggles(r rune) bool { return 0xe0000 <= r && r <= 0xe0fff }

func bracket(r rune) bool { return r == '<' || r == '＜' || r == '﹤' }

// fenceLike says that s begins like a fence, whatever stands between its letters that cannot be seen.
func fenceLike(s string) bool {
	word := 0
	for i, r := range s {
		if r >= 0xff21 && r <= 0xff5a {
			r -= 0xfee0 // a wide letter
		}
		switch {
		case i == 0, budget.Hidden(r):
		case word == 0 && (r == ' ' || r == '\t' || r == '\n' || r == '/' || r == '／'):
		case r == rune(fenceWord[word]) || r == rune(fenceWord[word]-'a'+'A'):
			if word++; word == len(fenceWord) {
				return true
			}
		default:
			return false
		}
	}
	return false
}

func hiddenNote(n int) string {
	return fmt.Sprintf("[%s left out of the text above]", plural(int64(n), "hidden character"))
}

// Files that are written to instruct agents: by their name, or by a folder that they are in.
var (
	instructingFiles   = []string{"agents.md", "claude.md", "gemini.md", "skill.md", ".cursorrules", ".windsurfrules", ".clinerules", "copilot-instructions.md"}
	instructingFolders = []string{".muster", ".claude", ".agents", ".cursor", ".gemini"}
)

// instructs says that a file is written to instruct agents, by the name it is asked for or the one that it has behind symlinks.
func instructs(t *workspace.Tree, asked string) bool {
	real := realPath(t, asked)
	if rel, err := filepath.Rel(t.Dir, real); err == nil && filepath.IsLocal(rel) {
		real = rel
	}
	if !filepath.IsAbs(asked) {
		asked = filepath.Clean(asked)
	} else if rel, err := filepath.Rel(t.Dir, asked); err == nil {
		asked = rel
	}
	return instructing(filepath.ToSlash(real)) || instructing(filepath.ToSlash(asked))
}

func instructing(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains(instructingFiles, path.Base(name)) {
		return true
	}
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(folder string) bool { return slices.Contains(instructingFolders, folder) })
}
