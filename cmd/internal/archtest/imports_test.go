package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// checkArrows holds the arrows between our packages.
func checkArrows(t *tree) (complaints []string) {
	eachImport(t, func(f source, spec *ast.ImportSpec) {
		to, ours := strings.CutPrefix(imported(spec), module+"/")
		row, known := arrows[f.pkg]
		if !ours || !known || to == f.pkg {
			return
		}
		if slices.Contains(row, to) || f.test && slices.Contains(arrows[f.pkg+" +tests"], to) {
			return
		}
		complaints = append(complaints, t.complaint(spec.Pos(),
			"%s may not import %s: move what you need down, or hand it in from above; a new arrow is a change of the table in archtest", f.pkg, to))
	})
	return complaints
}

// checkRows holds that packages and rows of the table of arrows are the same.
func checkRows(t *tree) (complaints []string) {
	packages := t.packages()
	for _, pkg := range packages {
		if _, known := arrows[pkg]; !known {
			complaints = append(complaints, t.complaint(t.of(pkg)[0].ast.Package,
				"package %s has no row in the table of arrows: put the file where it belongs, or add the package to archtest on purpose", pkg))
		}
	}
	for row, to := range arrows {
		pkg, _ := strings.CutSuffix(row, " +tests")
		for _, name := range append([]string{pkg}, to...) {
			if !slices.Contains(packages, name) {
				complaints = append(complaints, "cmd/internal/archtest/table_test.go:1: row "+row+" names "+name+", which does not exist: remove it")
			}
		}
	}
	slices.Sort(complaints)
	return complaints
}

// checkOwners holds who may use which outside module.
func checkOwners(t *tree) (complaints []string) {
	eachImport(t, func(f source, spec *ast.ImportSpec) {
		p := imported(spec)
		first, _, _ := strings.Cut(p, "/")
		if !strings.Contains(first, ".") {
			return
		}
		for _, o := range owners {
			if p != o.module && !strings.HasPrefix(p, o.module+"/") {
				continue
			}
			if !matches(f.pkg, o.packages) && !(f.test && slices.Contains(o.packages, "tests")) {
				complaints = append(complaints, t.complaint(spec.Pos(),
					"%s may not import %s: only %s may; ask one of them for what you need", f.pkg, p, strings.Join(o.packages, ", ")))
			}
			return
		}
		complaints = append(complaints, t.complaint(spec.Pos(),
			"%s has no owner: do without it, or add it to the table of owners in archtest on purpose", p))
	})
	return complaints
}

func eachImport(t *tree, visit func(source, *ast.ImportSpec)) {
	for _, f := range t.files {
		for _, spec := range f.ast.Imports {
			visit(f, spec)
		}
	}
}
