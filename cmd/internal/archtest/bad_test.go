package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// bad are sources that a check must complain of: for each, where the complaint points and a word of it. Everything
// else in them must pass.
var bad = []struct {
	name, check, source, at, says string
}{
	{"arrow up", "arrows", "-- budget/a.go --\npackage budget\n\nimport (\n\t\"fmt\"\n\t\"muster/board\"\n)\n", "budget/a.go:5", "budget may not import board"},
	{"arrow of tests in code", "arrows", "-- tools/a.go --\npackage tools\n\nimport \"muster/board/boardtest\"\n\n-- tools/a_test.go --\npackage tools\n\nimport \"muster/board/boardtest\"\n", "tools/a.go:3", "board/boardtest"},
	{"arrow on another platform", "arrows", "-- tools/sandbox/a_windows.go --\npackage sandbox\n\nimport \"muster/budget\"\n", "tools/sandbox/a_windows.go:3", "budget"},
	{"package without a row", "rows", "-- board/mirror/a.go --\npackage mirror\n", "board/mirror/a.go:1", "no row"},
	{"server beside its owner", "owners", "-- board/a.go --\npackage board\n\nimport \"github.com/nats-io/nats-server/v2/server\"\n\n-- board/embedded/a.go --\npackage embedded\n\nimport \"github.com/nats-io/nats-server/v2/server\"\n", "board/a.go:3", "only board/embedded may"},
	{"client above the board", "owners", "-- agents/a_test.go --\npackage agents\n\nimport nc \"github.com/nats-io/nats.go/jetstream\"\n", "agents/a_test.go:3", "only board/..., cmd/internal/app may"},
	{"module of tests in code", "owners", "-- budget/a.go --\npackage budget\n\nimport \"pgregory.net/rapid\"\n\n-- budget/a_test.go --\npackage budget\n\nimport \"pgregory.net/rapid\"\n", "budget/a.go:3", "only tests may"},
	{"module like an owned one", "owners", "-- cmd/worker/a.go --\npackage main\n\nimport \"github.com/nats-io/nats.gold\"\n", "cmd/worker/a.go:3", "no owner"},
	{"long file", "files", "-- board/a.go --\npackage board\n" + strings.Repeat("\n", 500) + "-- board/b.go --\npackage board\n" + strings.Repeat("\n", 499), "board/a.go:501", "501 lines"},
	{"long function", "functions", "-- board/a.go --\npackage board\n\nfunc long() {\n" + strings.Repeat("\tx()\n", 79) + "}\n\nfunc short() {\n" + strings.Repeat("\tx()\n", 78) + "}\n", "board/a.go:3", "long has 81 lines"},
	{"wide face", "faces", "-- board/a.go --\npackage board\n\nconst (\n" + names("A", 39) + ")\n\n-- board/b.go --\npackage board\n\ntype B struct{}\n\nfunc (B) M() {}\n\nfunc F() {}\n\n-- board/b_test.go --\npackage board\n\nfunc TestX() {}\n\n-- budget/a.go --\npackage budget\n\nvar (\n" + names("A", 40) + ")\n", "board/b.go:7", "41 names"},
	{"wide interface", "interfaces", "-- board/a.go --\npackage board\n\ntype wide interface {\n\tA()\n\tB()\n\tC()\n\tD()\n\tE()\n\terror\n}\n\ntype narrow interface{ A(); B(); C(); D(); E() }\n", "board/a.go:3", "6 methods"},
	{"init", "init", "-- board/a.go --\npackage board\n\ntype t struct{}\n\nfunc (t) init() {}\n\nfunc init() {}\n", "board/a.go:7", "init()"},
	{"own background", "contexts", "-- board/a.go --\npackage board\n\nimport \"context\"\n\nvar a = context.Background()\n\n-- cmd/worker/a.go --\npackage main\n\nimport \"context\"\n\nvar a = context.Background()\n\n-- board/a_test.go --\npackage board\n\nimport \"context\"\n\nvar b = context.Background()\n", "board/a.go:5", "context.Background"},
	{"context to do", "contexts", "-- cmd/worker/a_test.go --\npackage main\n\nimport c \"context\"\n\nvar a = c.TODO()\n", "cmd/worker/a_test.go:5", "context.TODO"},
	{"sleeping test", "sleeps", "-- board/a_test.go --\npackage board\n\nimport \"time\"\n\nfunc a() { time.Sleep(time.Second) }\n\n-- board/a.go --\npackage board\n\nimport \"time\"\n\nfunc b() { time.Sleep(time.Second) }\n", "board/a_test.go:5", "time.Sleep"},
	{"sleep handed on", "sleeps", "-- board/a_test.go --\npackage board\n\nimport \"time\"\n\nvar wait = time.Sleep\n", "board/a_test.go:5", "time.Sleep"},
	{"untyped map", "untyped", "-- tools/a.go --\npackage tools\n\nvar a map[string]any\n\n-- agents/llm/a.go --\npackage llm\n\nvar a map[string]any\n", "tools/a.go:3", "map[string]any"},
	{"untyped map in a test", "untyped", "-- tools/a_test.go --\npackage tools\n\nfunc f(a []map[string]interface{}, b map[string]string) {}\n", "tools/a_test.go:3", "map[string]any"},
	{"no story", "stories", "-- board/a.go --\n// Package board is told in the wrong place.\npackage board\n", "board/a.go:2", "no doc.go"},
	{"empty story", "stories", "-- board/doc.go --\npackage board\n\n-- board/b.go --\npackage board\n", "board/doc.go:1", "no package comment"},
	{"vague folder", "folders", "-- board/utils/a.go --\npackage utils\n", "board/utils/a.go:1", "utils"},
	{"unformatted", "format", "-- board/a.go --\npackage board\n\nvar a = 1\nvar  b = 2\n\n-- board/b.go --\npackage board\n", "board/a.go:4", "gofmt -w board/a.go"},
	{"test that asserts nothing", "asserts", "-- board/a_test.go --\npackage board\n\nfunc TestNothing(t *testing.T) {\n\tgo run()\n\tt.Log(\"ran\")\n}\n", "board/a_test.go:3", "TestNothing asserts nothing"},
	{"test that only makes", "asserts", "-- board/a_test.go --\npackage board\n\nfunc TestMakes(t *testing.T) {\n\tb := boardtest.New(t)\n\tb.Close()\n\thelp(t)\n}\n\nfunc help(t *testing.T) { t.Helper() }\n", "board/a_test.go:3", "TestMakes asserts nothing"},
	{"subtest that asserts nothing", "asserts", "-- board/a_test.go --\npackage board\n\nfunc TestSub(t *testing.T) {\n\tt.Run(\"x\", func(t *testing.T) { run() })\n}\n", "board/a_test.go:3", "TestSub"},
	{"test in circles", "asserts", "-- board/a_test.go --\npackage board\n\nfunc TestLoop(t *testing.T) { a(t) }\n\nfunc a(t *testing.T) { b(t) }\n\nfunc b(t *testing.T) { a(t) }\n", "board/a_test.go:3", "TestLoop"},
}

func names(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\t%s%02d = 1\n", prefix, i)
	}
	return b.String()
}

func TestEveryCheckCanFail(t *testing.T) {
	tried := make(map[string]bool)
	for _, one := range bad {
		tried[one.check] = true
		t.Run(one.name, func(t *testing.T) {
			got := checks[one.check](parse(t, one.source))
			if one.check == "rows" { // the rows without a package are another complaint
				got = slices.DeleteFunc(got, func(c string) bool { return strings.Contains(c, "does not exist") })
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], one.at+": ") || !strings.Contains(got[0], one.says) {
				t.Errorf("complaints are %q, want one at %s that says %q", got, one.at, one.says)
			}
		})
	}
	for name := range checks {
		if !tried[name] {
			t.Errorf("check %s has no bad source", name)
		}
	}
}

// Ways to assert that are none of t.Error in the test itself.
func TestAssertionsAreFound(t *testing.T) {
	for name, body := range map[string]string{
		"subtest":           `t.Run("x", func(t *testing.T) { t.Fatal("no") })`,
		"helper":            `check(t, 1)`,
		"helper of helper":  `outer(t)`,
		"wrapped":           `check(fatal{t}, 1)`,
		"other package":     `testscript.Run(t, testscript.Params{})`,
		"property":          `rapid.Check(t, func(r *rapid.T) { r.Fatalf("no") })`,
		"method of a table": `env := newEnv(t); env.want("x")`,
		"named subtest":     `t.Run("x", steps)`,
		"leak check":        `defer goleak.VerifyNone(t)`,
	} {
		source := "-- board/a_test.go --\npackage board\n\nfunc TestX(t *testing.T) {\n" + body + "\n}\n\nfunc check(t testing.TB, n int) { t.Error(n) }\n\n" +
			"func steps(t *testing.T) { check(t, 1) }\n\nfunc outer(tb testing.TB) { check(tb, 1) }\n\nfunc (e env) want(s string) { e.t.Errorf(s) }\n"
		if got := checkAsserts(parse(t, source)); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRowsOfNoPackageAreFound(t *testing.T) {
	got := checkRows(parse(t, "-- budget/a.go --\npackage budget\n"))
	if !slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, "row tools +tests names board/boardtest") }) {
		t.Errorf("no complaint of a row without a package in %q", got)
	}
}

func TestLinkedIsFound(t *testing.T) {
	server := "github.com/nats-io/nats-server/v2"
	got := linked("cmd/worker", []string{"fmt", server + "/server", server + "x"}, []string{server})
	if len(got) != 1 || !strings.Contains(got[0], server+"/server") {
		t.Errorf("got %q", got)
	}
}

// parse makes a tree of a txtar archive.
func parse(t *testing.T, archive string) *tree {
	t.Helper()
	tree := newTree()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if err := tree.add(f.Name, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}
