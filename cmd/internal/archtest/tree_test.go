package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "muster"

// tree is all Go source of the module, every platform's and the tests'.
type tree struct {
	fset  *token.FileSet
	files []source
}

// source is one file.
type source struct {
	name string // relative to the module's root, with /
	pkg  string // its folder
	test bool   // a _test.go file, or a package made for tests
	text []byte
	ast  *ast.File
}

func newTree() *tree { return &tree{fset: token.NewFileSet()} }

func (t *tree) add(name string, text []byte) error {
	parsed, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := path.Dir(name)
	test := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(pkg, "test")
	t.files = append(t.files, source{name, pkg, test, text, parsed})
	return nil
}

// load reads the tree under root, without folders that belong to other modules or to nobody.
func load(root string) (*tree, error) {
	t := newTree()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, modErr := os.Stat(filepath.Join(name, "go.mod"))
			hidden := strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata"
			if name != root && (hidden || modErr == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return t.add(filepath.ToSlash(relative), text)
	})
	return t, err
}

// packages lists the folders that hold Go files, sorted.
func (t *tree) packages() []string {
	var names []string
	for _, f := range t.files {
		names = append(names, f.pkg)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// of returns the files of a package.
func (t *tree) of(pkg string) []source {
	var files []source
	for _, f := range t.files {
		if f.pkg == pkg {
			files = append(files, f)
		}
	}
	return files
}

// complaint says where and what, and what to do about it.
func (t *tree) complaint(at token.Pos, format string, args ...any) string {
	p := t.fset.Position(at)
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// imported returns the path of an import.
func imported(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// matches tells whether pkg is one of patterns: a folder, or "x/..." for x and everything under it.
func matches(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		under, all := strings.CutSuffix(p, "/...")
		return pkg == under || all && strings.HasPrefix(pkg, under+"/")
	})
}

func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}
