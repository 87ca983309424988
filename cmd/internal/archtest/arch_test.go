package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checks are all that is held of the tree.
var checks = map[string]func(*tree) []string{
	"arrows":     checkArrows,
	"rows":       checkRows,
	"owners":     checkOwners,
	"files":      checkFiles,
	"functions":  checkFunctions,
	"faces":      checkFaces,
	"interfaces": checkInterfaces,
	"init":       checkInit,
	"contexts":   checkContexts,
	"sleeps":     checkSleeps,
	"untyped":    checkUntyped,
	"stories":    checkStories,
	"folders":    checkFolders,
	"format":     checkFormat,
	"asserts":    checkAsserts,
}

func TestTree(t *testing.T) {
	t.Parallel()
	tree, err := load(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.files) < 50 {
		t.Fatalf("only %d files found: the tree is somewhere else", len(tree.files))
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { report(t, check(tree)) })
	}
}

// What a program links, not only what it imports: an arrow to a package that links the server would do too.
func TestUnlinked(t *testing.T) {
	t.Parallel()
	for program, modules := range unlinked {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+program)
		list.Dir = root(t)
		out, err := list.CombinedOutput()
		if err != nil {
			t.Fatalf("go list -deps ./%s: %v\n%s", program, err, out)
		}
		report(t, linked(program, strings.Fields(string(out)), modules))
	}
}

// linked complains of packages that belong to modules.
func linked(program string, packages, modules []string) (complaints []string) {
	for _, pkg := range packages {
		for _, m := range modules {
			if pkg == m || strings.HasPrefix(pkg, m+"/") {
				complaints = append(complaints, program+":1: links "+pkg+": find the way with go mod why or go list -deps, and cut it")
			}
		}
	}
	return complaints
}

// What a newcomer reads first stays short enough to be read.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > readmeLines {
		t.Errorf("README.md:%d: has %d lines, at most %d: move what is told elsewhere to the doc.go of its package", n, n, readmeLines)
	}
}

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+module+"\n") {
		t.Fatalf("no go.mod of module %s in %s: %v", module, dir, err)
	}
	return dir
}
