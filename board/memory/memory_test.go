package memory

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func list(texts ...string) []Memory {
	var all []Memory
	for _, t := range texts {
		text, tags, _ := strings.Cut(t, " #")
		all = append(all, New(text, strings.Fields(tags), Author{}))
	}
	return all
}

func texts(all []Memory) []string {
	out := []string{}
	for _, m := range all {
		out = append(out, m.Text)
	}
	return out
}

func TestNewIsOneCleanLine(t *testing.T) {
	m := New("  The API\r\n\x1b[31mlistens\x1b[0m on\tport \u202e8080\u202c\x00. ", []string{"Net", " net ", "", "two\nlines", "\x07"}, Author{Job: "1"})
	if m.Text != "The API listens on port 8080." || m.By.Job != "1" {
		t.Errorf("text %q, by %+v", m.Text, m.By)
	}
	if diff := cmp.Diff([]string{"Net", "two lines"}, m.Tags); diff != "" {
		t.Error(diff)
	}
	if m.Chars() != len(m.Text)+len("net")+len("two lines") || m.Bytes() != int64(m.Chars()) {
		t.Errorf("%d characters, %d bytes", m.Chars(), m.Bytes())
	}
	if m := New("\x1b[0m \u200b\n", nil, Author{}); m.Text != "" {
		t.Errorf("nothing became %q", m.Text)
	}
}

func TestTheSameSentenceHasOneID(t *testing.T) {
	m := New("Deploys happen on Thursday", nil, Author{})
	for text, same := range map[string]bool{
		"deploys  happen\non THURSDAY.": true, "Deploys happen on Thursday!": true,
		"Deploys happen on Friday": false, "Thursday happens on deploys": false, "Deploys happen on Thursday?": false,
	} {
		if got := New(text, []string{"tag"}, Author{Job: "other"}); (got.ID == m.ID) != same {
			t.Errorf("%q has the id of %q: %v", text, m.Text, !same)
		}
	}
	if New("\u00e9galit\u00e9", nil, Author{}).ID != New("e\u0301galite\u0301", nil, Author{}).ID {
		t.Error("two ways to write the same letters are two memories")
	}
	for _, pair := range [][2]string{{"It is written in C", "It is written in C++"}, {"run it with -v", "run it with v"}, {".", "!"}} {
		if New(pair[0], nil, Author{}).ID == New(pair[1], nil, Author{}).ID {
			t.Errorf("%q and %q have one id", pair[0], pair[1])
		}
	}
}

func TestLikeOnes(t *testing.T) {
	all := list("Deploys happen on Friday evenings", "Thursday evenings happen on deploys", "The database is PostgreSQL 16", "部署在星期四晚上进行")
	for text, want := range map[string][]string{
		"Deploys happen on Thursday evenings": {"Thursday evenings happen on deploys", "Deploys happen on Friday evenings"},
		"部署在星期五晚上进行":                          {"部署在星期四晚上进行"},
		"The database is PostgreSQL 16":       {}, // itself
		"Nothing of the kind":                 {},
	} {
		if diff := cmp.Diff(want, texts(New(text, nil, Author{}).Like(all))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestFindByAbbreviatedID(t *testing.T) {
	all := []Memory{{ID: "abcdef0123", Text: "a"}, {ID: "abcdef4567", Text: "b"}, {ID: "ff00ff00ff", Text: "c"}}
	for id, want := range map[string]string{"abcdef4567": "b", "FF00FF": "c", " ff00ff00 ": "c"} {
		if m, err := Find(all, id); err != nil || m.Text != want {
			t.Errorf("%s: %q, %v", id, m.Text, err)
		}
	}
	for id, want := range map[string]error{"abcdef": ErrAmbiguous, "ff00f": ErrNotFound, "": ErrNotFound, "123456": ErrNotFound} {
		if _, err := Find(all, id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}

// hits are the texts that a query finds, in their order.
func hits(t *testing.T, all []Memory, query string) []string {
	t.Helper()
	found, total, err := Search(t.Context(), all, query, 100)
	if err != nil || total != len(found) {
		t.Fatalf("%q: %d of %d, %v", query, len(found), total, err)
	}
	return texts(found)
}

func TestSearchRanks(t *testing.T) {
	all := list(
		"The staging database is rebuilt every night at two #database ops",
		"Deploys happen on THURSDAY evenings #ops",
		"The database password is in the vault, never in the repository #database secrets",
		"Use cache.Snapshot in tools/workspace/cache.go for copies",
		"Le café près de l'église ferme à dix heures",
		"数据库的密码在保险箱里", "テストは毎晩二時に走る", "ฐานข้อมูลอยู่ที่เครื่องหลัก",
		"Ship it when the light is green 🚀", "The parser is written in C++",
	)
	for query, want := range map[string]string{
		"thursday": all[1].Text, "deployed": all[1].Text, "where is the database password": all[2].Text, "nightly rebuild staging": all[0].Text,
		"tools/workspace/cache.go": all[3].Text, "cafe eglise": all[4].Text, "数据库密码": all[5].Text, "密码": all[5].Text, "箱": all[5].Text,
		"テスト": all[6].Text, "ฐานข้อมูล": all[7].Text, "🚀": all[8].Text, "c++": all[9].Text, "SECRETS": all[2].Text, "ops": all[1].Text,
	} {
		got := hits(t, all, query)
		if len(got) == 0 || got[0] != want {
			t.Errorf("%q: got %q, want %q first", query, got, want)
		}
	}
	if got := hits(t, all, "zebra"); len(got) != 0 {
		t.Errorf("zebra finds %q", got)
	}
	if diff := cmp.Diff(texts(all), hits(t, all, " \n")); diff != "" {
		t.Errorf("no query: %s", diff)
	}
}

func TestEqualOnesStandAsInTheList(t *testing.T) {
	all := list("alpha one", "alpha two", "alpha ten")
	if diff := cmp.Diff(texts(all), hits(t, all, "alpha")); diff != "" {
		t.Error(diff)
	}
}

func TestTotalIsExact(t *testing.T) {
	var all []Memory
	for i := range 300 {
		all = append(all, New(strings.Repeat("x", i)+" common", nil, Author{}))
	}
	got, total, err := Search(t.Context(), all, "common", 7)
	if err != nil || len(got) != 7 || total != 300 {
		t.Errorf("%d of %d, %v", len(got), total, err)
	}
	if got, total, err := Search(t.Context(), all, "", 7); err != nil || len(got) != 7 || total != 300 {
		t.Errorf("no query: %d of %d, %v", len(got), total, err)
	}
	if got, total, err := Search(t.Context(), nil, "common", 7); err != nil || len(got) != 0 || total != 0 {
		t.Errorf("of nothing: %d of %d, %v", len(got), total, err)
	}
}

// Whatever a query is, it is no syntax: it finds or does not, and the memory that it is found in is found.
func TestQueriesAreNoSyntax(t *testing.T) {
	all := list("alpha beta", "NEAR and NOT or AND", `say "hello" (twice)`, "gamma*")
	for _, q := range []string{
		`"`, `""`, `"""`, "*", "^", "alpha*", "AND", "NOT", "OR OR", "NEAR(alpha beta)", "text:alpha", "pairs:x", "-alpha", "a+b", "(", ")", "{text tags}", ":", ";", "'", "\\", "alpha\x00beta", "\xff", "--", "%", "_",
		strings.Repeat("(", 2000), strings.Repeat(`"`, 1001), strings.Repeat("a ", 500), strings.Repeat("中", 1000),
	} {
		if _, _, err := Search(t.Context(), all, q, 10); err != nil {
			t.Errorf("%.40q: %v", q, err)
		}
	}
	var many strings.Builder
	for i := range 500 {
		many.WriteRune(rune('一' + i))
		many.WriteByte(' ')
	}
	if _, _, err := Search(t.Context(), all, many.String(), 10); err != nil {
		t.Errorf("500 different words: %v", err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune(`abc "*():^+-,.'\中文ท🚀é`)), 1, 30, -1).Draw(rt, "text")
		m := New(text, nil, Author{})
		if m.Text == "" || !utf8.ValidString(m.Text) {
			return
		}
		found, _, err := Search(t.Context(), append(list("other"), m), m.Text, 10)
		if err != nil {
			rt.Fatalf("%q: %v", m.Text, err)
		}
		for _, f := range found {
			if f.ID == m.ID {
				return
			}
		}
		rt.Fatalf("%q is not found by itself", m.Text)
	})
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{"alpha", `"a" OR b*`, "中文 テスト", "\x00\xff", "NEAR(a b, 2)"} {
		f.Add("the text of a memory, 中文", s)
	}
	f.Fuzz(func(t *testing.T, text, query string) {
		all := []Memory{New(text, []string{text}, Author{}), New("another", nil, Author{})}
		got, total, err := Search(t.Context(), all, query, 1)
		if err != nil || total > len(all) || len(got) > total {
			t.Errorf("%d of %d, %v", len(got), total, err)
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	var all []Memory
	for i := range 1000 {
		all = append(all, New(strings.Repeat("word number some more of them ", 5)+strings.Repeat("y", i%50), []string{"tag"}, Author{}))
	}
	for b.Loop() {
		if _, _, err := Search(b.Context(), all, "some number yyy", 10); err != nil {
			b.Fatal(err)
		}
	}
}
