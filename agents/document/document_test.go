package document_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/agents/document"
)

type sample struct {
	Title string            `yaml:"title"`
	Count int               `yaml:"count"`
	Tags  []string          `yaml:"tags"`
	Env   map[string]string `yaml:"env"`
	Sub   *sample           `yaml:"sub"`
	Args  document.Value    `yaml:"args"`
}

func TestRefusals(t *testing.T) {
	laughs := "title: x\nargs:\n  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		laughs += fmt.Sprintf("  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for name, c := range map[string]struct{ in, want string }{
		"unknown field":     {"title: x\ntitel: y\n", `f.yaml:2: unknown field "titel"; did you mean title?`},
		"nested unknown":    {"sub:\n  title: x\n  nope: 1\n", `f.yaml:3: unknown field "nope"`},
		"several":           {"nope: 1\ncount: many\n", "f.yaml:1: unknown field \"nope\"\nf.yaml:2: want a whole number, have \"many\""},
		"list for text":     {"title: [a]\n", "f.yaml:1: want a text, have a list"},
		"text for list":     {"\ntags: a\n", `f.yaml:2: want a list, have "a"`},
		"text for mapping":  {"sub: a\n", `f.yaml:1: want a mapping of fields, have "a"`},
		"key twice":         {"title: a\ntitle: b\n", `f.yaml:2: field "title" given twice (first on line 1)`},
		"key twice in args": {"args:\n  a: 1\n  a: 2\n", `f.yaml:3: field "a" given twice`},
		"syntax":            {"title: x\ncount: [\n", "f.yaml:3: did not find expected node content"},
		"no key":            {"title: x\n\n- y\n", "f.yaml:3: did not find expected key"},
		"no mapping":        {"title: x\ncount: y: z\n", "f.yaml:2: mapping values are not allowed"},
		"empty":             {"", "f.yaml:1: the file is empty"},
		"comment only":      {"# nothing\n", "f.yaml:1: the file is empty"},
		"a list":            {"- a\n", "f.yaml:1: the top must be a mapping of fields"},
		"two documents":     {"title: a\n---\ntitle: b\n", "f.yaml:2: a second document"},
		"laughs":            {laughs, "aliases expand to more than 200000 values"},
		"self":              {"args: &a\n  b: *a\n", "contains itself"},
		"infinite":          {"args: {a: .inf}\n", "no number that JSON can hold"},
		"tag":               {"args: {a: !odd x}\n", "f.yaml:1: tag !odd cannot be used here"},
		"too large":         {"title: " + strings.Repeat("x", 5000), "over 4096 bytes"},
		"not text":          {"title: \xff\n", "not valid UTF-8"},
		"deep":              {"args: " + strings.Repeat("[", 4000), "f.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var s sample
			_, err := document.Read("f.yaml", []byte(c.in), 4096, &s)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v\nwant %s", err, c.want)
			}
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestValueKeepsOrderAndTypes(t *testing.T) {
	var s sample
	in := "args: {z: 1, a: [true, null, 1.5, 0x10, 2020-01-01, \"10\", '<&>', 😀], m: {k: v}}\n"
	if _, err := document.Read("f.yaml", []byte(in), 4096, &s); err != nil {
		t.Fatal(err)
	}
	want := `{"z":1,"a":[true,null,1.5,16,"2020-01-01","10","<&>","😀"],"m":{"k":"v"}}`
	if got := string(s.Args.JSON); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.Args.Line != 1 {
		t.Errorf("line %d, want 1", s.Args.Line)
	}
}

func TestJSONIsRead(t *testing.T) {
	var s sample
	in := "{\n\t\"title\": \"a\\ud83d\\ude00b \\\\ud83d \\/ \\u00e9\",\n\t\"count\":\t3,\n\t\"nope\": 1\n}\n"
	_, err := document.Read("f.json", []byte(in), 4096, &s)
	if err == nil || err.Error() != `f.json:4: unknown field "nope"` {
		t.Errorf("got %v", err)
	}
	in = strings.Replace(in, ",\n\t\"nope\": 1", "", 1)
	s = sample{}
	if _, err := document.Read("f.json", []byte(in), 4096, &s); err != nil {
		t.Fatal(err)
	}
	if want := `a😀b \ud83d / é`; s.Title != want || s.Count != 3 {
		t.Errorf("got %q, %d; want %q, 3", s.Title, s.Count, want)
	}
}

func TestLine(t *testing.T) {
	var s sample
	d, err := document.Read("f.yaml", []byte("title: x\nsub:\n  tags:\n    - a\n    - b\n"), 4096, &s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path []any
		want int
	}{
		{[]any{"title"}, 1},
		{[]any{"sub"}, 2},
		{[]any{"sub", "tags", 1}, 5},
		{[]any{"sub", "tags", 7}, 3},
		{[]any{"nope"}, 1},
	} {
		if got := d.Line(c.path...); got != c.want {
			t.Errorf("Line(%v) = %d, want %d", c.path, got, c.want)
		}
	}
	if got := d.Errorf([]any{"sub"}, "bad %d", 1).Error(); got != "f.yaml:2: bad 1" {
		t.Errorf("got %q", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("title: x\nargs: {a: [1, *b]}\n"))
	f.Add([]byte(`{"title":"\ud83d\ude00"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var s sample
		if _, err := document.Read("f", in, 4096, &s); err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("an error without its file: %v", err)
		}
	})
}

func TestHead(t *testing.T) {
	for in, want := range map[string]struct {
		fields, body string
		line         int
		ok           bool
	}{
		"---\na: 1\n---\nbody\n":                     {"\na: 1\n", "body\n", 4, true},
		"\ufeff\n \n---  \r\na: 1\r\n--- \t\r\nbody": {"\n\n\na: 1\n", "body", 6, true},
		"---\n---":                              {"\n", "", 3, true},
		"---\na: |\n  x\n  ---\n---\nb\n---\nc": {"\na: |\n  x\n  ---\n", "b\n---\nc", 6, true},
		"---\na: 1\n----\nbody":                 {"", "---\na: 1\n----\nbody", 1, false},
		"# title\n---\na: 1\n---\n":             {"", "# title\n---\na: 1\n---\n", 1, false},
		"":                                      {"", "", 1, false},
		"---":                                   {"", "---", 1, false},
		"\n\n":                                  {"", "\n\n", 1, false},
	} {
		fields, body, line, ok := document.Head(in)
		if fields != want.fields || body != want.body || line != want.line || ok != want.ok {
			t.Errorf("%q: %q, %q, %d, %v", in, fields, body, line, ok)
		}
	}
}

func TestLooseReadingKnowsNoStrangers(t *testing.T) {
	var s sample
	if _, err := document.ReadLoose("f.yaml", []byte("title: x\nunknown: {a: [1]}\n"), 4096, &s); err != nil || s.Title != "x" {
		t.Errorf("%q, %v", s.Title, err)
	}
	for name, in := range map[string]string{
		"given twice": "title: a\ntitle: b\n", "too long": "title: " + strings.Repeat("x", 5000), "an anchor in itself": "x: &a [*a]\n", "two documents": "title: a\n---\nb: c\n",
		"a list": "- a\n", "not UTF-8": "title: \xff\n",
	} {
		if _, err := document.ReadLoose("f.yaml", []byte(in), 4096, &s); err == nil {
			t.Errorf("%s was let through", name)
		}
	}
}
