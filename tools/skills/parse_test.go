package skills

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"muster/agents/document"
	"muster/budget"
)

func TestHeadsAreReadLeniently(t *testing.T) {
	long := strings.Repeat("word ", 300)
	for name, c := range map[string]struct {
		text, name, description string
		says                    []string
		skipped                 bool
	}{
		"as it should be":     {"---\nname: tide\ndescription: Reads tides.\nlicense: MIT\nmetadata: {a: b}\nallowed-tools: [Read]\n---\nx", "tide", "Reads tides.", nil, false},
		"CRLF":                {"---\r\nname: tide\r\ndescription: Reads tides.\r\n---\r\nx", "tide", "Reads tides.", nil, false},
		"byte order mark":     {"\ufeff---\nname: tide\ndescription: Reads tides.\n---\n", "tide", "Reads tides.", nil, false},
		"no newline":          {"---\nname: tide\ndescription: Reads tides.\n---", "tide", "Reads tides.", nil, false},
		"literal block":       {"---\nname: tide\ndescription: |\n  Reads\n  tides.\n---\n", "tide", "Reads tides.", nil, false},
		"folded block":        {"---\nname: tide\ndescription: >-\n  Reads\n\n  tides: all.\n---\n", "tide", "Reads tides: all.", nil, false},
		"plain lines":         {"---\nname: tide\ndescription:\n  First half\n  and second.\n---\n", "tide", "First half and second.", nil, false},
		"quoted":              {"---\nname: \"tide\"\ndescription: 'It''s: \"quoted\" # no comment'\n---\n", "tide", `It's: "quoted" # no comment`, nil, false},
		"a colon":             {"---\nname: tide\ndescription: Use when: the tide turns\n---\n", "tide", "Use when: the tide turns", []string{":3: a value with a colon"}, false},
		"a colon, two lines":  {"---\nname: tide\ndescription: Use when: the tide\n  turns: always\n---\n", "tide", "Use when: the tide turns: always", []string{"a value with a colon"}, false},
		"numbers and truth":   {"---\nname: 123\ndescription: true\n---\n", "123", "true", []string{`its name 123 is not that of its folder, "tide"`}, false},
		"another name":        {"---\nname: ebb\ndescription: d\n---\n", "ebb", "d", []string{":2: its name ebb is not that of its folder"}, false},
		"no name":             {"---\ndescription: d\n---\n", "tide", "d", []string{"it has no name"}, false},
		"null name":           {"---\nname: ~\ndescription: d\n---\n", "tide", "d", []string{"it has no name"}, false},
		"bad letters":         {"---\nname: Tide Table\ndescription: d\n---\n", "tide", "d", []string{`its name "Tide Table"`}, false},
		"double hyphen":       {"---\nname: ti--de\ndescription: d\n---\n", "tide", "d", []string{`its name "ti--de"`}, false},
		"long name":           {"---\nname: " + strings.Repeat("a", 65) + "\ndescription: d\n---\n", "tide", "d", []string{"at most 64"}, false},
		"name is a list":      {"---\nname: [a]\ndescription: d\n---\n", "tide", "d", []string{"its name"}, false},
		"escapes":             {"---\nname: tide\ndescription: \"a\\x1b[31mb\\u202e c\\n- evil: x\"\n---\n", "tide", "ab c - evil: x", nil, false},
		"long description":    {"---\nname: tide\ndescription: " + long + "\n---\n", "tide", budget.Preview(long, 1024), []string{"its description has 1499 characters"}, false},
		"rules in the body":   {"---\nname: tide\ndescription: d\n---\na\n---\nb\n", "tide", "d", nil, false},
		"no description":      {"---\nname: tide\n---\n", "", "", []string{":1: it has no description"}, true},
		"empty description":   {"---\nname: tide\ndescription: \"  \"\n---\n", "", "", []string{":3: it has no description"}, true},
		"null description":    {"---\nname: tide\ndescription:\n---\n", "", "", []string{"it has no description"}, true},
		"description a list":  {"---\nname: tide\ndescription: [a, b]\n---\n", "", "", []string{":3: its description is no text"}, true},
		"description a map":   {"---\nname: tide\ndescription: {a: b}\n---\n", "", "", []string{"its description is no text"}, true},
		"no YAML":             {"---\nname: [unclosed\ndescription: {oops\n---\n", "", "", []string{"its head is no YAML"}, true},
		"a tab":               {"---\n\t bad: tab\n---\n", "", "", []string{"its head is no YAML"}, true},
		"given twice":         {"---\nname: tide\ndescription: a\ndescription: b\n---\n", "", "", []string{":4: its head is no YAML", "given twice"}, true},
		"no head":             {"# Tide\n", "", "", []string{":1: it has no head"}, true},
		"head without an end": {"---\nname: tide\ndescription: d\n", "", "", []string{"it has no head"}, true},
		"empty head":          {"---\n---\nbody", "", "", []string{"its head is empty"}, true},
		"empty":               {"", "", "", []string{"it has no head"}, true},
		"UTF-16":              {"\xff\xfe-\x00-\x00-\x00", "", "", []string{"it is UTF-16"}, true},
		"not UTF-8":           {"---\nname: tide\ndescription: \xff\n---\n", "", "", []string{"not valid UTF-8"}, true},
		"an anchor in itself": {"---\nname: tide\ndescription: d\nx: &a [*a]\n---\n", "", "", []string{"contains itself"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse([]byte(c.text), "tide", true)
			text := said(p.problems)
			if skipped := len(p.problems) > 0 && p.problems[len(p.problems)-1].Skipped; skipped != c.skipped {
				t.Errorf("skipped: %v\n%s", skipped, text)
			}
			if !c.skipped && (p.name != c.name || p.description != c.description) {
				t.Errorf("got %q: %q", p.name, p.description)
			}
			if len(p.problems) != max(1, len(c.says)) && (len(c.says) > 0 || len(p.problems) > 0) && name != "given twice" {
				t.Errorf("%d problems:\n%s", len(p.problems), text)
			}
			for _, w := range c.says {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in\n%s", w, text)
				}
			}
		})
	}
}

func TestNamesAreMadeOfFolders(t *testing.T) {
	for folder, want := range map[string]string{"My Skill": "my-skill", "a_b.c": "a-b-c", "--": "skill", "中文": "skill", strings.Repeat("ab-", 40): strings.TrimSuffix(strings.Repeat("ab-", 22)[:64], "-")} {
		p := parse([]byte("---\ndescription: d\n---\n"), folder, true)
		if p.name != want || !valid(p.name) {
			t.Errorf("%q became %q, want %q", folder, p.name, want)
		}
	}
	if p := parse([]byte("---\nname: Good Name!\ndescription: d\n---\n"), "Bad Folder", true); p.name != "good-name" {
		t.Errorf("got %q", p.name)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		md("tide", "Reads tides."), "---\r\nname: 1\r\n---", "---\nname: a: b: c\ndescription: x: y\n  z\n---\n---\n", "---\n? a\n: b\n---\n", "---\na: &x [*x]\n---\n", "---\ndescription: !!binary aGk=\n---\n",
		"---\ndescription: 2020-01-01\nname: .inf\n---\n", "\ufeff\n\n---\n{\"description\": \"\\ud83d\\ude00\"}\n---\n",
	} {
		f.Add([]byte(s), "tide")
	}
	f.Fuzz(func(t *testing.T, data []byte, folder string) {
		p := parse(data, folder, true)
		skipped := false
		for i, one := range p.problems {
			if skipped = skipped || one.Skipped; one.Skipped != (i == len(p.problems)-1 && skipped) {
				t.Errorf("problem %d of %d is skipped: %+v", i, len(p.problems), one)
			}
			if one.Text == "" || one.Line < 1 {
				t.Errorf("problem %+v", one)
			}
		}
		if !skipped && (!valid(p.name) || p.description == "" || budget.Chars(p.description) > descriptionChars || strings.ContainsAny(p.description, "\n\r\x1b") || !utf8.ValidString(p.description)) {
			t.Errorf("name %q, description %q", p.name, p.description)
		}
		if _, body, line, ok := document.Head(string(data)); ok && (line < 3 || len(body) > len(data)) {
			t.Errorf("body of %d bytes at line %d", len(body), line)
		}
	})
}

func ExampleProblem_String() {
	fmt.Println(Problem{File: ".claude/skills/tide/SKILL.md", Line: 3, Text: "it has no description"})
	// Output: .claude/skills/tide/SKILL.md:3: it has no description
}
