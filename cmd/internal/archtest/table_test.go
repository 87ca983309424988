package archtest

// arrows says which of our own packages a package may import. Every package has a row; the row "+tests" names what its
// tests may import beside that.
var arrows = map[string][]string{
	"budget":                  {},
	"board/policy":            {},
	"board/secrets":           {},
	"board/approval":          {},
	"board":                   {"board/approval", "board/memory", "board/secrets", "budget", "board/policy"},
	"board/memory":            {"budget"},
	"board +tests":            {"board/boardtest", "board/embedded"},
	"board/boardtest":         {"board", "board/embedded"},
	"board/embedded":          {},
	"tools/patch":             {},
	"tools/rules":             {"board/policy", "budget"},
	"tools/sandbox":           {},
	"tools/egress":            {"board/policy"},
	"tools/egress +tests":     {"tools/egress/egresstest"},
	"tools/egress/egresstest": {},
	"tools/web":               {"budget", "tools/egress"},
	"tools/web +tests":        {"tools/egress/egresstest"},
	"tools/git":               {"budget", "tools/sandbox"},
	"tools/workspace":         {"budget", "tools/git", "tools/sandbox"},
	"tools/skills":            {"agents/document", "budget", "tools/workspace"},
	"tools":                   {"board", "board/approval", "board/memory", "board/secrets", "budget", "tools/egress", "tools/git", "tools/patch", "tools/rules", "tools/sandbox", "tools/skills", "tools/web", "tools/workspace"},
	"tools +tests":            {"board/boardtest", "tools/egress/egresstest"},
	"agents/document":         {"budget"},
	"agents/llm":              {"agents/document", "budget"},
	"agents":                  {"agents/document", "agents/llm", "board", "board/approval", "budget", "board/policy", "tools", "tools/egress", "tools/rules", "tools/sandbox", "tools/skills", "tools/web", "tools/workspace"},
	"agents +tests":           {"board/boardtest"},
	"cmd/internal/app":        {"agents", "board", "board/secrets", "budget", "cmd/internal/config", "board/policy", "tools/git", "tools/sandbox", "tools/workspace"},
	"cmd/internal/config":     {"agents", "agents/document", "board", "board/secrets", "board/policy", "tools/egress", "tools/rules", "tools/sandbox", "tools/web", "tools/workspace"},
	"cmd/worker":              {"cmd/internal/app", "cmd/internal/config", "tools/sandbox"},
	"cmd/worker +tests":       {"board/boardtest", "board/embedded"},
	"cmd/orchestrator":        {"agents", "agents/document", "agents/llm", "board", "board/approval", "board/embedded", "board/memory", "budget", "cmd/internal/app", "cmd/internal/config", "board/policy", "tools", "tools/rules", "tools/sandbox", "tools/skills", "tools/workspace"},
	"cmd/internal/archtest":   {},
	"cmd/orchestrator +tests": {"board/boardtest"},
	"cmd/internal/app +tests": {"board/boardtest", "board/embedded"},
}

// owner is an outside module and the packages that may import it: "x/..." is x and everything under it, "tests" every
// test.
type owner struct {
	module   string
	packages []string
}

var owners = []owner{
	{"github.com/nats-io/nats-server/v2", []string{"board/embedded"}},
	{"github.com/nats-io/nats.go", []string{"board/...", "cmd/internal/app"}},
	{"github.com/nats-io/nkeys", []string{"board/...", "cmd/internal/app"}},
	{"github.com/urfave/cli/v2", []string{"cmd/..."}},
	{"github.com/adrg/xdg", []string{"cmd/..."}},
	{"github.com/clipperhouse/displaywidth", []string{"cmd/..."}},
	{"golang.org/x/term", []string{"cmd/..."}},
	{"github.com/dustin/go-humanize", []string{"cmd/...", "tools"}},
	{"github.com/google/uuid", []string{"agents", "board", "cmd/...", "tools"}},
	{"github.com/rs/zerolog", []string{"agents/...", "board/...", "cmd/...", "tools/..."}},
	{"github.com/cenkalti/backoff/v5", []string{"agents/...", "board"}},
	{"go.yaml.in/yaml/v3", []string{"agents/...", "budget", "board/policy"}},
	{"github.com/clipperhouse/uax29/v2", []string{"budget"}},
	{"github.com/google/jsonschema-go", []string{"tools/..."}},
	{"github.com/aymanbagabas/go-udiff", []string{"tools/..."}},
	{"github.com/go-git/go-git/v5", []string{"tools/..."}},
	{"github.com/charlievieth/fastwalk", []string{"tools/..."}},
	{"github.com/bmatcuk/doublestar/v4", []string{"agents", "tools/..."}},
	{"modernc.org/sqlite", []string{"board/memory"}},
	{"mvdan.cc/sh/v3", []string{"tools/rules"}},
	{"code.dny.dev/ssrf", []string{"tools/egress"}},
	{"codeberg.org/readeck/go-readability/v2", []string{"tools/web"}},
	{"github.com/JohannesKaufmann/html-to-markdown/v2", []string{"tools/web"}},
	{"github.com/gogs/chardet", []string{"tools/web"}},
	{"github.com/temoto/robotstxt", []string{"tools/web"}},
	{"golang.org/x/net", []string{"tools/web"}},
	{"golang.org/x/text", []string{"board/memory", "tools/web"}},
	{"golang.org/x/sync", []string{"agents/...", "board", "cmd/...", "tools/..."}},
	{"golang.org/x/sys", []string{"board/embedded", "cmd/...", "tools/sandbox", "tools/workspace", "tests"}},
	{"github.com/google/go-cmp", []string{"tests"}},
	{"pgregory.net/rapid", []string{"tests"}},
	{"go.uber.org/goleak", []string{"board/boardtest", "tests"}},
	{"github.com/rogpeppe/go-internal", []string{"tests"}},
	{"github.com/creack/pty", []string{"tests"}},
}

// unlinked are modules that must not reach a program, however far down its imports.
var unlinked = map[string][]string{
	"cmd/worker": {"github.com/nats-io/nats-server/v2"},
}

// The sizes. They are a floor for thought: most files and functions are far smaller.
const (
	fileLines        = 500
	functionLines    = 80
	faceNames        = 40 // exported names of a package, methods not counted
	interfaceMethods = 5
	readmeLines      = 150
)

// untyped may use map[string]any: what they decode has no shape of ours.
var untyped = []string{"tools/mcp", "agents/llm"}

// vague are folder names that say nothing of what is inside.
var vague = []string{"util", "utils", "common", "helpers", "misc", "types", "models", "manager", "shared", "lib", "pkg"}
