package archtest

import (
	"bytes"
	"go/ast"
	"go/token"
)

// checkFiles holds the length of files.
func checkFiles(t *tree) (complaints []string) {
	for _, f := range t.files {
		if n := bytes.Count(f.text, []byte("\n")); n > fileLines {
			complaints = append(complaints, t.complaint(f.ast.FileEnd-1,
				"file has %d lines, at most %d: find the second thing that it tells and give it a file", n, fileLines))
		}
	}
	return complaints
}

// checkFunctions holds the length of functions, from the word func to the last brace.
func checkFunctions(t *tree) (complaints []string) {
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			decl, isFunc := d.(*ast.FuncDecl)
			if !isFunc {
				continue
			}
			n := t.fset.Position(decl.End()).Line - t.fset.Position(decl.Pos()).Line + 1
			if n > functionLines {
				complaints = append(complaints, t.complaint(decl.Pos(),
					"function %s has %d lines, at most %d: give its steps names", decl.Name.Name, n, functionLines))
			}
		}
	}
	return complaints
}

// checkFaces holds the number of names that a package exports.
func checkFaces(t *tree) (complaints []string) {
	for _, pkg := range t.packages() {
		names := 0
		var at token.Pos
		for _, f := range t.of(pkg) {
			if f.test && pkg != "board/boardtest" || f.ast.Name.Name == "main" {
				continue
			}
			for _, d := range f.ast.Decls {
				for _, name := range declared(d) {
					if name.IsExported() {
						names, at = names+1, name.Pos()
					}
				}
			}
		}
		if names > faceNames {
			complaints = append(complaints, t.complaint(at,
				"package %s exports %d names, at most %d: hide what no other package uses, or split it where two stories meet", pkg, names, faceNames))
		}
	}
	return complaints
}

// declared lists the package-level names of a declaration. Methods belong to their type.
func declared(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name)
			case *ast.ValueSpec:
				names = append(names, spec.Names...)
			}
		}
	}
	return names
}

// checkInterfaces holds the number of methods of an interface.
func checkInterfaces(t *tree) (complaints []string) {
	for _, f := range t.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			face, is := n.(*ast.InterfaceType)
			if !is {
				return true
			}
			if methods := face.Methods.NumFields(); methods > interfaceMethods {
				complaints = append(complaints, t.complaint(face.Pos(),
					"interface has %d methods, at most %d: ask for less, or take the concrete type", methods, interfaceMethods))
			}
			return true
		})
	}
	return complaints
}
