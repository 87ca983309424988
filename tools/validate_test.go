package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"muster/budget"
)

type probeArgs struct {
	Path  string  `json:"path" jsonschema:"p"`
	Text  string  `json:"text,omitempty" default:"none" jsonschema:"t"`
	Count int64   `json:"count,omitempty" default:"5" min:"1" max:"10" jsonschema:"c"`
	Big   int64   `json:"big,omitempty" jsonschema:"b"`
	Ratio float64 `json:"ratio,omitempty" jsonschema:"r"`
	Yes   bool    `json:"yes,omitempty" jsonschema:"y"`
	Kind  string  `json:"kind,omitempty" enum:"a,b" jsonschema:"k"`
	List  []struct {
		Name string `json:"name" jsonschema:"n"`
	} `json:"list,omitempty" max:"2" jsonschema:"l"`
}

// probe is a tool that only tells what arguments reached it.
func probe(t testing.TB) Tool {
	tool := define("probe", Read, "probe", func(_ context.Context, _ *Call, a probeArgs) (Output, error) { return Output{}, nil })
	fitted, err := tool.fit(budget.Default())
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

func TestArgumentErrorsSayTheField(t *testing.T) {
	tool := probe(t)
	for _, c := range []struct{ args, want string }{
		{``, "missing string field `path`"},
		{`null`, "missing string field `path`"},
		{`{}`, "missing string field `path`"},
		{`{"path":null}`, "missing string field `path`"},
		{`{"path":12}`, "missing string field `path`: got number 12"},
		{`{"path":["a"]}`, "missing string field `path`: got array"},
		{`{"path":""}`, "field `path` is empty"},
		{`[1]`, "must be a JSON object, got array"},
		{`"x"`, "must be a JSON object, got string"},
		{`{"path":"a"`, "byte 11 of 11"},
		{`{"path":"a",}`, "byte 13 of 13"},
		{`{"path":"a"} x`, "byte 12 of 14: more text follows"},
		{"{\"path\":\"\xff\"}", "not valid UTF-8 at byte 9"},
		{`{"path":"\ud800x"}`, "half a surrogate pair at byte 9"},
		{`{"pth":"a"}`, `unknown field "pth"; probe takes: path, text, count, big, ratio, yes, kind, list`},
		{`{"Path":"a"}`, `unknown field "Path"`},
		{`{"path":"a","count":"many"}`, "field `count` must be an integer, got string \"many\""},
		{`{"path":"a","count":"NaN"}`, "field `count` must be an integer"},
		{`{"path":"a","count":2.5}`, "field `count` must be an integer, got number 2.5"},
		{`{"path":"a","ratio":"Infinity"}`, "field `ratio` must be a number"},
		{`{"path":"a","yes":"perhaps"}`, "field `yes` must be a boolean"},
		{`{"path":"a","yes":1}`, "field `yes` must be a boolean, got number 1"},
		{`{"path":"a","kind":"c"}`, "field `kind` is \"c\"; it must be one of: a, b"},
		{`{"path":"a","list":[{}]}`, "missing string field `list[0].name`"},
		{`{"path":"a","list":[{"name":"n"},3]}`, "field `list[1]` must be an object, got number 3"},
		{`{"path":"a","list":[{"name":"n","x":1}]}`, `unknown field "x"; probe in list[0] takes: name`},
		{`{"path":"a","list":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, "field `list` has 3 items, 2 are allowed"},
	} {
		_, _, err := arguments(tool, json.RawMessage(c.args))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
		if err != nil && explain(err).Class != Input {
			t.Errorf("%s: class %s", c.args, explain(err).Class)
		}
	}
}

func TestArgumentsAreBroughtToTheirTypes(t *testing.T) {
	tool := probe(t)
	for _, c := range []struct {
		args string
		want probeArgs
		note string
	}{
		{`{"path":"a"}`, probeArgs{Path: "a", Text: "none", Count: 5}, ""},
		{`{"path":"a","text":"","count":null}`, probeArgs{Path: "a", Text: "none", Count: 5}, ""},
		{`{"path":"a","count":"7"}`, probeArgs{Path: "a", Text: "none", Count: 7}, ""},
		{`{"path":"a","count":7.0}`, probeArgs{Path: "a", Text: "none", Count: 7}, ""},
		{`{"path":"a","count":"7e0"}`, probeArgs{Path: "a", Text: "none", Count: 7}, ""},
		{`{"path":"a","yes":"true"}`, probeArgs{Path: "a", Text: "none", Count: 5, Yes: true}, ""},
		{`{"path":"a","count":-3}`, probeArgs{Path: "a", Text: "none", Count: 1}, "[count -3 is out of range; 1 was used]"},
		{`{"path":"a","count":1e999}`, probeArgs{Path: "a", Text: "none", Count: 10}, "10 was used]"},
		{`{"path":"a","big":9223372036854775808}`, probeArgs{Path: "a", Text: "none", Count: 5, Big: biggest}, ""},
		{`{"path":"a","big":-1e400}`, probeArgs{Path: "a", Text: "none", Count: 5, Big: -biggest}, ""},
		{`{"path":"\ud83d\ude80\\ud800"}`, probeArgs{Path: `🚀\ud800`, Text: "none", Count: 5}, ""},
	} {
		raw, notes, err := arguments(tool, json.RawMessage(c.args))
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		var got probeArgs
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		got.List = nil
		if gotJSON, wantJSON := encoded(t, got), encoded(t, c.want); gotJSON != wantJSON {
			t.Errorf("%s: %s, want %s", c.args, gotJSON, wantJSON)
		}
		if note := strings.Join(notes, " "); !strings.Contains(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s: notes %q, want %q", c.args, note, c.note)
		}
	}
}

func encoded(t *testing.T, v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"path":"a"}`, `{"path":1e999}`, `[`, "\xff", `{"list":[{"name":"x"}]}`} {
		f.Add(s)
	}
	tool := probe(f)
	f.Fuzz(func(t *testing.T, raw string) {
		args, _, err := arguments(tool, json.RawMessage(raw))
		if err != nil {
			if explain(err).Class != Input {
				t.Errorf("%q: class %s: %v", raw, explain(err).Class, err)
			}
			return
		}
		var a probeArgs
		if err := json.Unmarshal(args, &a); err != nil {
			t.Errorf("%q: accepted as %s, which does not decode: %v", raw, args, err)
		}
		if a.Path == "" || a.Count < 1 || a.Count > 10 {
			t.Errorf("%q: accepted with %s", raw, args)
		}
	})
}
