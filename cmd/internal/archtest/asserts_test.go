package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// checkAsserts holds that every test can fail: it calls Error, Fatal or the like, or hands its t to a function that
// does. Of functions in other packages it is believed, unless they only make something (New…, Start…).
func checkAsserts(t *tree) (complaints []string) {
	for _, pkg := range t.packages() {
		a := asserts{funcs: make(map[string][]*ast.FuncDecl)}
		for _, f := range t.of(pkg) {
			for _, d := range f.ast.Decls {
				if decl, is := d.(*ast.FuncDecl); is && decl.Body != nil {
					a.funcs[decl.Name.Name] = append(a.funcs[decl.Name.Name], decl)
				}
			}
		}
		for _, f := range t.of(pkg) {
			if !strings.HasSuffix(f.name, "_test.go") {
				continue
			}
			for _, d := range f.ast.Decls {
				if decl, is := d.(*ast.FuncDecl); is && isTest(decl) && !a.asserts(decl, nil) {
					complaints = append(complaints, t.complaint(decl.Pos(), "%s asserts nothing: say what must hold, with t.Error or a helper that does", decl.Name.Name))
				}
			}
		}
	}
	return complaints
}

// isTest tells whether decl is a test or a fuzz target.
func isTest(decl *ast.FuncDecl) bool {
	name := decl.Name.Name
	return decl.Recv == nil && decl.Type.Params.NumFields() == 1 && name != "TestMain" &&
		(strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz"))
}

// asserts looks for assertions in the functions of one package, by name.
type asserts struct {
	funcs map[string][]*ast.FuncDecl
}

var failing = []string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}

// asserts tells whether decl can fail a test. above are the functions on the way here, against going round in circles.
func (a asserts) asserts(decl *ast.FuncDecl, above []*ast.FuncDecl) bool {
	if slices.Contains(above, decl) {
		return false
	}
	above = append(slices.Clone(above), decl)
	handles := handlesOf(decl)
	found := false
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if found || !is {
			return !found
		}
		found = a.fails(call, handles, above)
		return !found
	})
	return found
}

// fails tells whether a call fails a test or hands a handle of it to something that may.
func (a asserts) fails(call *ast.CallExpr, handles []string, above []*ast.FuncDecl) bool {
	name, on := callee(call.Fun)
	if on != "" && slices.Contains(failing, name) && slices.Contains(handles, on) {
		return true
	}
	for _, arg := range call.Args { // t.Run("name", steps), f.Fuzz(steps)
		if value, _ := callee(arg); a.any(value, above) {
			return true
		}
	}
	if !slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return mentions(arg, handles) }) {
		return on != "" && a.any(name, above)
	}
	if len(a.funcs[name]) > 0 {
		return a.any(name, above)
	}
	return on != "" && !strings.HasPrefix(name, "New") && !strings.HasPrefix(name, "Start")
}

// any tells whether a function of the package by that name can fail a test.
func (a asserts) any(name string, above []*ast.FuncDecl) bool {
	return slices.ContainsFunc(a.funcs[name], func(d *ast.FuncDecl) bool { return a.asserts(d, above) })
}

// callee returns the name that is called and, for x.name, the name x ("?" where x is no name).
func callee(fun ast.Expr) (name, on string) {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name, ""
	case *ast.SelectorExpr:
		switch x := fun.X.(type) {
		case *ast.Ident:
			return fun.Sel.Name, x.Name
		case *ast.SelectorExpr:
			return fun.Sel.Name, x.Sel.Name
		}
		return fun.Sel.Name, "?"
	}
	return "", ""
}

// mentions tells whether an argument is a handle, or a value made of one such as wrapper{t}; not a function that uses one.
func mentions(arg ast.Expr, handles []string) bool {
	found := false
	ast.Inspect(arg, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			found = found || slices.Contains(handles, n.Name)
		}
		return !found
	})
	return found
}

// handlesOf lists the names under which decl and the functions in it hold a test: parameters and receiver fields of the
// usual names, and parameters that have a Fatalf.
func handlesOf(decl *ast.FuncDecl) []string {
	handles := []string{"t", "tb"}
	ast.Inspect(decl, func(n ast.Node) bool {
		fn, is := n.(*ast.FuncType)
		if !is {
			return true
		}
		for _, field := range fn.Params.List {
			if isHandle(field.Type) {
				for _, name := range field.Names {
					handles = append(handles, name.Name)
				}
			}
		}
		return true
	})
	return handles
}

// isHandle tells whether a parameter's type is a test: *testing.T, testing.TB, *rapid.T, an interface with Fatalf.
func isHandle(e ast.Expr) bool {
	if star, is := e.(*ast.StarExpr); is {
		e = star.X
	}
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return slices.Contains([]string{"T", "TB", "F", "B", "TestScript"}, e.Sel.Name)
	case *ast.InterfaceType:
		return slices.ContainsFunc(e.Methods.List, func(f *ast.Field) bool {
			return len(f.Names) == 1 && slices.Contains(failing, f.Names[0].Name)
		})
	}
	return false
}
