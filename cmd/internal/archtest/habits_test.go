package archtest

import (
	"bytes"
	"go/ast"
	"go/format"
	"path"
	"slices"
	"strings"
)

// checkInit holds that nothing happens by being imported.
func checkInit(t *tree) (complaints []string) {
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			if decl, is := d.(*ast.FuncDecl); is && decl.Recv == nil && decl.Name.Name == "init" {
				complaints = append(complaints, t.complaint(decl.Pos(), "init(): make it a value in an explicit list, or a call from main"))
			}
		}
	}
	return complaints
}

// checkContexts holds that a context comes from the caller.
func checkContexts(t *tree) (complaints []string) {
	eachUse(t, "context", func(f source, use *ast.SelectorExpr) {
		name := use.Sel.Name
		if name == "Background" && (f.test || f.ast.Name.Name == "main") || name != "Background" && name != "TODO" {
			return
		}
		complaints = append(complaints, t.complaint(use.Pos(),
			"context.%s outside of main and tests: take a ctx from the caller; context.WithoutCancel(ctx) outlives its cancellation", name))
	})
	return complaints
}

// checkSleeps holds that tests wait for what they need, not for time to pass.
func checkSleeps(t *tree) (complaints []string) {
	eachUse(t, "time", func(f source, use *ast.SelectorExpr) {
		if f.test && use.Sel.Name == "Sleep" {
			complaints = append(complaints, t.complaint(use.Pos(), "time.Sleep in a test: wait for the event, poll with a deadline, or use testing/synctest"))
		}
	})
	return complaints
}

// eachUse visits every use of a name of a standard package, under whatever name it is imported.
func eachUse(t *tree, pkg string, visit func(source, *ast.SelectorExpr)) {
	for _, f := range t.files {
		local := ""
		for _, spec := range f.ast.Imports {
			if imported(spec) != pkg {
				continue
			}
			local = path.Base(pkg)
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
		if local == "" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			use, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if x, isName := use.X.(*ast.Ident); isName && x.Name == local {
				visit(f, use)
			}
			return true
		})
	}
}

// checkUntyped holds where map[string]any is allowed.
func checkUntyped(t *tree) (complaints []string) {
	for _, f := range t.files {
		if slices.Contains(untyped, f.pkg) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			m, is := n.(*ast.MapType)
			if is && isName(m.Key, "string") && (isName(m.Value, "any") || isEmptyInterface(m.Value)) {
				complaints = append(complaints, t.complaint(m.Pos(), "map[string]any: write the struct that it stands for, or keep it as json.RawMessage"))
			}
			return true
		})
	}
	return complaints
}

func isName(e ast.Expr, name string) bool {
	id, is := e.(*ast.Ident)
	return is && id.Name == name
}

func isEmptyInterface(e ast.Expr) bool {
	face, is := e.(*ast.InterfaceType)
	return is && face.Methods.NumFields() == 0
}

// checkStories holds that every package tells its story in doc.go.
func checkStories(t *tree) (complaints []string) {
	for _, pkg := range t.packages() {
		files := t.of(pkg)
		at := slices.IndexFunc(files, func(f source) bool { return f.name == path.Join(pkg, "doc.go") })
		switch {
		case at < 0:
			complaints = append(complaints, t.complaint(files[0].ast.Package, "package %s has no doc.go: tell what it holds, the life of its main thing, its promises", pkg))
		case files[at].ast.Doc == nil:
			complaints = append(complaints, t.complaint(files[at].ast.Package, "doc.go of %s has no package comment: write its story right above the package clause", pkg))
		}
	}
	return complaints
}

// checkFolders holds that a folder is a noun that a user would say.
func checkFolders(t *tree) (complaints []string) {
	for _, pkg := range t.packages() {
		for part := range strings.SplitSeq(pkg, "/") {
			if slices.Contains(vague, part) {
				complaints = append(complaints, t.complaint(t.of(pkg)[0].ast.Package, "folder %s says nothing of what is inside: put each thing beside its caller", part))
			}
		}
	}
	return complaints
}

// checkFormat holds that gofmt changes nothing.
func checkFormat(t *tree) (complaints []string) {
	for _, f := range t.files {
		formatted, err := format.Source(f.text)
		if err != nil || bytes.Equal(formatted, f.text) {
			continue
		}
		line := 1 + bytes.Count(f.text[:same(f.text, formatted)], []byte("\n"))
		complaints = append(complaints, t.complaint(t.fset.File(f.ast.Pos()).LineStart(line), "not formatted: run gofmt -w %s", f.name))
	}
	return complaints
}

// same returns how many bytes a and b begin with in common; the line with the first difference exists in a.
func same(a, b []byte) int {
	n := 0
	for n < len(a)-1 && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
