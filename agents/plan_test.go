package agents_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/txtar"

	"muster/agents"
	"muster/board"
	"muster/board/policy"
	"muster/budget"
)

var update = flag.Bool("update", false, "accept what the code says as the golden files")

// TestPlans reads testdata/plans: a txtar with plan.yaml, the files of the folder it is expanded over, and "want": the jobs, or the
// error.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var plan []byte
			var want *txtar.File
			for i, f := range ar.Files {
				switch f.Name {
				case "plan.yaml":
					plan = f.Data
				case "want":
					want = &ar.Files[i]
				default:
					writeFile(t, filepath.Join(dir, f.Name), string(f.Data))
				}
			}
			got := expanded(t, plan, dir)
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(string(want.Data), got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// expanded is the jobs of a plan with names in place of ids, or its error.
func expanded(t *testing.T, plan []byte, dir string) string {
	t.Helper()
	p, err := agents.ParsePlan("plan.yaml", plan)
	if err != nil {
		return err.Error() + "\n"
	}
	jobs, err := p.Jobs(t.Context(), dir, board.Job{Profile: "explore", Env: map[string]string{"BASE": "1"}, Base: board.Base{Commit: "c0ffee"}})
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir, "DIR") + "\n"
	}
	names := map[string]string{}
	var b strings.Builder
	for _, j := range jobs {
		if id, err := uuid.Parse(j.ID); err != nil || id.Version() != 7 {
			t.Errorf("id %q is no UUIDv7", j.ID)
		}
		if j.Run != jobs[0].Run || j.Created.IsZero() || names[j.ID] != "" {
			t.Errorf("job %s: run %s, created %v, id seen %q", j.Name, j.Run, j.Created, names[j.ID])
		}
		names[j.ID] = j.Name
		timeout := ""
		if !j.Deadline.IsZero() {
			timeout = " timeout " + j.Deadline.Sub(j.Created).Round(time.Second).String()
		}
		for i, id := range j.After {
			if names[id] == "" {
				t.Errorf("job %s stands before one it comes after", j.Name)
			}
			j.After[i] = names[id]
		}
		j.ID, j.Run, j.Created, j.Deadline = "", "", time.Time{}, time.Time{}
		out, err := json.MarshalIndent(j, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s%s\n", out, timeout)
	}
	return b.String()
}

func TestBadPlans(t *testing.T) {
	const step = "steps: [{tool: list_dir}]"
	for in, want := range map[string]string{
		"title: x\n":           "p.yaml:1: a plan needs jobs",
		"jobs: []\n":           "p.yaml:1: a plan needs jobs",
		"jobs:\n  - {id: a}\n": `p.yaml:2: job "a" needs a prompt or steps`,
		"jobs:\n  - {id: a, prompt: x, " + step + "}\n":               `p.yaml:2: job "a" has a prompt and steps`,
		"jobs:\n  - {id: a, prompt: x, promt: y}\n":                   `p.yaml:2: unknown field "promt"`,
		"jobs:\n  - {id: a, prompt: x}\n  - {id: a, prompt: y}\n":     `p.yaml:3: job id "a" is taken (line 2)`,
		"jobs:\n  - {id: a b, prompt: x}\n":                           `p.yaml:2: job id "a b"`,
		"jobs:\n  - {prompt: x}\n":                                    `p.yaml:2: job id ""`,
		"jobs:\n  - {id: a-b, prompt: x}\n  - {id: a_b, prompt: y}\n": "p.yaml:3: job ids \"a-b\" and \"a_b\" would share",
		"jobs:\n  - id: a\n    prompt: x\n    after:\n      - b\n":    `p.yaml:5: job "a" comes after "b", which is no job`,
		"jobs:\n  - {id: a, prompt: x, after: [c]}\n  - {id: b, prompt: x, after: [a]}\n  - {id: c, prompt: x, after: [b]}\n": "the jobs wait for each other: a after c after b after a",
		"jobs:\n  - {id: a, prompt: x, after: [a]}\n":                                                              "the jobs wait for each other: a after a",
		"jobs:\n  - id: a\n    steps:\n      - tool: read_flie\n":                                                  `p.yaml:4: read_flie: unknown tool "read_flie"; the nearest are: read_file`,
		"jobs:\n  - id: a\n    steps:\n      - {tool: read_file, args: {pth: x}}\n":                                `p.yaml:4: read_file: unknown field "pth"`,
		"jobs:\n  - id: a\n    steps:\n      - {tool: read_file}\n":                                                "p.yaml:4: read_file: missing string field `path`",
		"jobs:\n  - id: a\n    steps:\n      - {tool: read_file, args: [x]}\n":                                     "p.yaml:4: args must be a mapping",
		"jobs:\n  - {id: a, prompt: 'see ${{ item }}'}\n":                                                          `p.yaml:2: ${{ item }}: job "a" has no foreach`,
		"jobs:\n  - {id: a, prompt: 'see ${{ itme }}'}\n":                                                          "p.yaml:2: unknown expression ${{ itme }}",
		"jobs:\n  - {id: a, prompt: 'see ${{ item'}\n":                                                             "p.yaml:2: an expression is not closed",
		"jobs:\n  - {id: a, prompt: x}\n  - {id: b, prompt: '${{ results.a }}'}\n":                                 `p.yaml:3: results.a: job "b" does not come after "a"`,
		"jobs:\n  - {id: a, prompt: x}\n  - id: b\n    after: [a]\n    title: '${{ results.a }}'\n    prompt: x\n": "p.yaml:5: a title cannot hold",
		"jobs:\n  - {id: a, prompt: '${{ item }}', foreach: {items: [x, y], chunk: 2}}\n":                          "use ${{ items }}",
		"jobs:\n  - {id: a, prompt: x, foreach: {}}\n":                                                             "foreach needs items",
		"jobs:\n  - {id: a, prompt: x, foreach: {items: [], glob: ''}}\n":                                          "foreach needs items",
		"jobs:\n  - {id: a, prompt: x, foreach: {items: [a], glob: b}}\n":                                          "one of them",
		"jobs:\n  - {id: a, prompt: x, foreach: {glob: '../*'}}\n":                                                 "a pattern relative to the folder",
		"jobs:\n  - {id: a, prompt: x, foreach: {glob: '[a'}}\n":                                                   "a pattern relative to the folder",
		"jobs:\n  - {id: a, prompt: x, foreach: {glob: '*', chunk: -1}}\n":                                         "chunk must be 1 or more",
		"jobs:\n  - {id: a, prompt: x, profile: nobody}\n":                                                         `unknown profile "nobody": there are explore, general, plan`,
		"mode: bold\njobs:\n  - {id: a, prompt: x}\n":                                                              `p.yaml:1: unknown mode "bold"`,
		"jobs:\n  - {id: a, prompt: x, model: gpt}\n":                                                              "write provider:model",
		"jobs:\n  - {id: a, prompt: x, caps: {grep_matches: 0}}\n":                                                 "grep_matches",
		"jobs:\n  - {id: a, prompt: x, caps: {grep_matchse: 5}}\n":                                                 "grep_matchse",
		"jobs:\n  - {id: a, prompt: x, timeout: soon}\n":                                                           `timeout "soon"`,
		"jobs:\n  - {id: a, prompt: x, attempts: 99}\n":                                                            "attempts must be 1 to 20",
		"jobs:\n  - {id: a, prompt: x, priority: urgent}\n":                                                        "priority must be high, normal or low",
		"jobs:\n  - {id: a, prompt: x, pool: a.b}\n":                                                               `pool "a.b"`,
		"sandbox: {min: off}\njobs:\n  - {id: a, prompt: x}\n":                                                     `p.yaml:1: sandbox: min: no job can ask for off`,
		"jobs:\n  - id: a\n    prompt: x\n    sandbox:\n      min: full\n      network: open\n":                    `p.yaml:6: sandbox: network: no job can ask for open`,
		"jobs:\n  - id: a\n    prompt: x\n    sandbox:\n      limits: {memory: -1}\n":                              `p.yaml:5: sandbox: limits: memory -1: a job cannot take a limit away`,
		"jobs:\n  - id: a\n    prompt: x\n    sandbox:\n      limits: {memory: 4 cows}\n":                          `p.yaml:5: "4 cows" is no size`,
		"jobs:\n  - {id: a, prompt: x, sandbox: {mode: off}}\n":                                                    `p.yaml:2: unknown field "mode"`,
		"jobs:\n  - {id: a, prompt: x, sandbox: {domains: [10.0.0.1]}}\n":                                          `p.yaml:2: sandbox: domains: domain "10.0.0.1": write a name`,
		"jobs:\n  - {id: a, prompt: x, rules: {deny: ['']}}\n":                                                     `p.yaml:2: rules: `,
		"env: {MUSTER_ITEM: x}\njobs:\n  - {id: a, prompt: x}\n":                                                   `"MUSTER_ITEM" cannot be set`,
		"jobs:\n  - {id: a, prompt: [x]}\n":                                                                        "p.yaml:2: want a text, have a list",
		"jobs: {a: {prompt: x}}\n":                                                                                 "p.yaml:1: want a list, have a mapping",
		"jobs:\n  - &a {id: a, prompt: x, env: *a}\n":                                                              "contains itself",
		"title: " + strings.Repeat("x", 300<<10):                                                                   "over 262144 bytes",
	} {
		if _, err := agents.ParsePlan("p.yaml", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", in[:min(len(in), 300)], err, want)
		}
	}
}

func TestSeveralErrorsComeAtOnce(t *testing.T) {
	_, err := agents.ParsePlan("p.yaml", []byte("mode: bold\njobs:\n  - {id: a}\n  - {id: b, prompt: x, after: [z]}\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three errors, a line each; got %v", err)
	}
}

// What was asked for on the spot: a mode is not widened, caps are not changed. The rest is of the job, then the plan, then the base.
func TestJobsTakeSettingsFromJobThenPlanThenBase(t *testing.T) {
	p, err := agents.ParsePlan("dir/p.yaml", []byte(`
model: script:s.json
caps: {grep_matches: 7, glob_files: 7}
attempts: 5
env: {A: plan, B: plan}
jobs:
  - {id: a, prompt: x}
  - {id: b, prompt: x, model: other:m, caps: {glob_files: 9}, attempts: 1, pool: gpu, mode: plan, env: {B: job}}
`))
	if err != nil {
		t.Fatal(err)
	}
	base := board.Job{Run: "r1", Pool: "p", Mode: "goal", Model: "base:m", Caps: budget.Choice{Numbers: map[string]int{"grep_matches": 1, "log_count": 3}}}
	jobs, err := p.Jobs(t.Context(), t.TempDir(), base)
	if err != nil {
		t.Fatal(err)
	}
	a, b := jobs[0], jobs[1]
	if a.Model != "script:dir/s.json" || b.Model != "other:m" || a.Attempts != 5 || b.Attempts != 1 || a.Pool != "p" || b.Pool != "gpu" ||
		a.Mode != "goal" || b.Mode != "plan" || a.Run != "r1" || b.Env["A"] != "plan" || b.Env["B"] != "job" || a.Env["B"] != "plan" {
		t.Errorf("got\n%+v\n%+v", a, b)
	}
	if d := cmp.Diff(map[string]int{"grep_matches": 1, "glob_files": 9, "log_count": 3}, b.Caps.Numbers); d != "" {
		t.Errorf("caps: %s", d)
	}
	base.Mode = "plan"
	if p, err = agents.ParsePlan("p.yaml", []byte("mode: goal\njobs:\n  - {id: a, prompt: x}\n  - {id: b, prompt: x, mode: default}\n")); err != nil {
		t.Fatal(err)
	}
	if jobs, err = p.Jobs(t.Context(), t.TempDir(), base); err != nil || jobs[0].Mode != "plan" || jobs[1].Mode != "plan" {
		t.Errorf("under mode plan: %+v, %v", jobs, err)
	}
}

// A job's sandbox lies over the plan's; what was asked for on the spot narrows both. Rules add up.
func TestJobsTakeTheirSandboxFromJobThenPlanUnderTheBase(t *testing.T) {
	p, err := agents.ParsePlan("p.yaml", []byte(`
sandbox: {min: full, network: proxy, domains: [example.com, example.org], limits: {memory: 2GiB, processes: 50}}
rules: {deny: ["web_fetch"]}
jobs:
  - {id: a, prompt: x}
  - {id: b, prompt: x, sandbox: {min: seccomp, network: none, limits: {memory: 3GiB}}, rules: {deny: ["run_command"]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	base := board.Job{Sandbox: policy.Sandbox{Min: "landlock", Domains: []string{"example.com"}}, Rules: policy.Rules{Deny: []string{"git_commit"}}}
	jobs, err := p.Jobs(t.Context(), t.TempDir(), base)
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Sandbox{
		{Min: "full", Network: "proxy", Domains: []string{"example.com"}, Limits: policy.Limits{Memory: 2 << 30, Processes: 50}},
		{Min: "landlock", Network: "none", Limits: policy.Limits{Memory: 3 << 30, Processes: 50}},
	}
	if d := cmp.Diff(want, []policy.Sandbox{jobs[0].Sandbox, jobs[1].Sandbox}); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"git_commit", "web_fetch", "run_command"}, jobs[1].Rules.Deny); d != "" {
		t.Error(d)
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte("jobs:\n  - {id: a, foreach: {items: [1, 2], chunk: 2}, prompt: '${{ items }}'}\n"))
	f.Add([]byte("jobs:\n  - {id: a, after: [b], steps: [{tool: grep, args: {pattern: '${{ results.b }}'}}]}\n  - {id: b, prompt: x}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := agents.ParsePlan("p", in)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "p:") {
				t.Errorf("an error without its place: %v", err)
			}
			return
		}
		if _, err := p.Jobs(t.Context(), ".", board.Job{}); err != nil && !strings.HasPrefix(err.Error(), "p:") {
			t.Errorf("an error without its place: %v", err)
		}
	})
}
