package integration

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// The texts of errors are found where they end up: in errors.New, in fmt.Errorf, in what a method
// Error returns, in results of functions that are called why or problem, and in the structs that errors are. A parameter of a function that is handed on to
// one of these is such a place itself, so that a new helper for errors is found by itself.

// place is a parameter of a function, whose arguments are texts of errors.
type place struct {
	function string // folder and name, such as "config.fail"
	index    int
}

// firstPlaces are those of the standard library, and of the structs that errors are: fields of that
// name in a composite literal.
var (
	firstPlaces = []place{
		{"errors.New", 0},
		{"fmt.Errorf", 0},
		{"idsource/resp.appendError", 1},
		{"monitor.problem", 2},
		{"monitor.busy", 1},
		{"monitor.add", 0},
		{"monitor.add", 1},
		{"rewriter.bad", 1},
		{"rewriter.unfinished", 1},
		{"cmd/idproxy/initial.out", 1},
		{"cmd/idproxy/migrate.changed", 0},
	}
	textFields = map[string]bool{"Message": true, "Hint": true, "Form": true, "Why": true, "Reason": true, "Detail": true}
	errorTypes = regexp.MustCompile(`(Error|Refusal|Unsupported|Finding|problem|Reply)$`)
)

// sourceFile is one file of the program.
type sourceFile struct {
	name    string
	folder  string
	imports map[string]string // the folder of a package, by the name that the file has for it
	tree    *ast.File
}

// messageReader finds the texts of errors in the files of the program.
type messageReader struct {
	files     []sourceFile
	places    map[place]bool
	constants map[string]string          // by folder and name
	functions map[string][]*ast.FuncDecl // by folder and name; several methods may have one
	found     []message
	seen      map[string]bool
	numbers   map[string]string // of errors for clients: number and SQL state, by message
}

// message is the text of an error, and the file that it is in.
type message struct{ file, text string }

func readMessages(files map[string]string) (*messageReader, error) {
	r := &messageReader{places: map[place]bool{}, constants: map[string]string{}, functions: map[string][]*ast.FuncDecl{}, seen: map[string]bool{}, numbers: map[string]string{}}
	for _, p := range firstPlaces {
		r.places[p] = true
	}
	set := token.NewFileSet()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		tree, err := parser.ParseFile(set, name, files[name], 0)
		if err != nil {
			return nil, err
		}
		f := sourceFile{name, filepath.ToSlash(filepath.Dir(name)), map[string]string{}, tree}
		for _, i := range tree.Imports {
			from, _ := strconv.Unquote(i.Path.Value)
			called := path.Base(from)
			if i.Name != nil {
				called = i.Name.Name
			}
			f.imports[called] = strings.TrimPrefix(from, module)
		}
		r.files = append(r.files, f)
		r.declare(f)
	}
	for known := -1; known != len(r.places); { // until no parameter is found any more
		known = len(r.places)
		r.eachFunction(r.handOn)
	}
	r.eachFunction(r.collect)
	return r, nil
}

func (r *messageReader) declare(f sourceFile) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name := f.folder + "." + n.Name.Name
			r.functions[name] = append(r.functions[name], n)
		case *ast.ValueSpec:
			if len(n.Names) == 1 && len(n.Values) == 1 {
				if text, ok := literal(n.Values[0]); ok {
					r.constants[f.folder+"."+n.Names[0].Name] = text
				}
			}
		}
		return true
	})
}

// scope is a function in its file; function is nil for what stands outside of all.
type scope struct {
	sourceFile
	function *ast.FuncDecl
	node     ast.Node
}

func (r *messageReader) eachFunction(do func(scope)) {
	for _, f := range r.files {
		for _, d := range f.tree.Decls {
			function, _ := d.(*ast.FuncDecl)
			do(scope{f, function, d})
		}
	}
}

// texts calls do for each expression in a scope that is the text of an error.
func (r *messageReader) texts(s scope, do func(ast.Expr, []ast.Expr)) {
	ast.Inspect(s.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := s.called(n.Fun)
			for i, argument := range n.Args {
				if r.places[place{name, i}] || errorTypes.MatchString(expression(n.Fun)) && len(n.Args) == 1 {
					do(argument, n.Args[i+1:])
				}
			}
		case *ast.CompositeLit:
			for i, e := range n.Elts {
				pair, named := e.(*ast.KeyValueExpr)
				if !errorTypes.MatchString(expression(n.Type)) {
					continue
				}
				if named && textFields[expression(pair.Key)] {
					do(pair.Value, nil)
				}
				if !named && i > 0 { // the first says what kind it is of
					do(e, nil)
				}
			}
		case *ast.ReturnStmt:
			if s.function != nil && s.function.Name.Name == "Error" && len(n.Results) == 1 {
				do(n.Results[0], nil)
			}
			for _, i := range s.reasons() {
				if i < len(n.Results) {
					do(n.Results[i], nil)
				}
			}
		}
		return true
	})
}

// reasons are the results of the function that say what is wrong, by their names.
func (s scope) reasons() (all []int) {
	if s.function == nil || s.function.Type.Results == nil {
		return nil
	}
	i := 0
	for _, field := range s.function.Type.Results.List {
		for _, name := range field.Names {
			if (name.Name == "why" || name.Name == "problem") && expression(field.Type) == "string" {
				all = append(all, i)
			}
			i++
		}
	}
	return all
}

// called names the function of a call by its folder.
func (s scope) called(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return s.folder + "." + fun.Name
	case *ast.SelectorExpr:
		if of, ok := s.imports[expression(fun.X)]; ok {
			return of + "." + fun.Sel.Name
		}
		return s.folder + "." + fun.Sel.Name
	}
	return ""
}

// handOn finds parameters that become texts of errors.
func (r *messageReader) handOn(s scope) {
	if s.function == nil {
		return
	}
	parameters := map[string]int{}
	for _, field := range s.function.Type.Params.List {
		for _, name := range field.Names {
			index := len(parameters)
			parameters[name.Name] = index
			if expression(field.Type) != "string" {
				delete(parameters, name.Name)
				parameters[fmt.Sprint(index)] = index // keeps its place
			}
		}
	}
	r.texts(s, func(e ast.Expr, arguments []ast.Expr) {
		for _, e := range append(parts(e), arguments...) {
			if index, ok := parameters[expression(e)]; ok {
				r.places[place{s.folder + "." + s.function.Name.Name, index}] = true
			}
		}
	})
}

// parts are what a text is put together from.
func parts(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return append(parts(e.X), parts(e.Y)...)
	case *ast.CallExpr:
		if expression(e.Fun) == "fmt.Sprintf" {
			return slices.Clone(e.Args)
		}
	}
	return []ast.Expr{e}
}

// inserted are the arguments of a text that is made with fmt.Sprintf.
func inserted(e ast.Expr) []ast.Expr {
	call, ok := e.(*ast.CallExpr)
	if !ok || expression(call.Fun) != "fmt.Sprintf" {
		return nil
	}
	return slices.Clone(call.Args[1:])
}

func (r *messageReader) collect(s scope) {
	r.texts(s, func(e ast.Expr, arguments []ast.Expr) {
		for _, text := range r.resolve(s, e, nil) {
			r.add(s, text, 2)
		}
		for _, a := range append(inserted(e), arguments...) {
			for _, text := range r.resolve(s, a, nil) {
				r.add(s, text, 2)
			}
		}
	})
	ast.Inspect(s.node, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || s.called(call.Fun) != "proxy/clienterr.New" || len(call.Args) < 3 {
			return true
		}
		state, known := literal(call.Args[1])
		for _, text := range r.resolve(s, call.Args[2], nil) {
			if text = told(text); known && text != "" && number(call.Args[0]) != "code" {
				r.numbers[text] = strings.TrimSpace(number(call.Args[0]) + " " + state)
			}
		}
		return true
	})
}

// number is an error number as it stands in the source: digits, or the name of a constant.
func number(e ast.Expr) string {
	if digits, ok := e.(*ast.BasicLit); ok {
		return digits.Value
	}
	return strings.TrimPrefix(expression(e), "mysql.")
}

const gap = "\x00" // what is known only when the error is made

// resolve returns what an expression may say, with gaps. within are the names that it is read for.
func (r *messageReader) resolve(s scope, e ast.Expr, within []string) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, ok := literal(e); ok {
			return []string{text}
		}
	case *ast.ParenExpr:
		return r.resolve(s, e.X, within)
	case *ast.BinaryExpr:
		var all []string
		for _, x := range r.resolve(s, e.X, within) {
			ends := r.resolve(s, e.Y, within)
			if _, call := e.Y.(*ast.CallExpr); call && slices.Contains(ends, gap) {
				ends = []string{gap} // which stands for the others as well
			}
			for _, y := range ends {
				all = append(all, x+y)
			}
		}
		return all
	case *ast.Ident:
		return r.named(s, e.Name, within)
	case *ast.CallExpr:
		return r.returned(s, e, within)
	}
	return []string{gap}
}

// named returns what a constant or a variable of the function may say.
func (r *messageReader) named(s scope, name string, within []string) []string {
	if text, ok := r.constants[s.folder+"."+name]; ok {
		return []string{text}
	}
	var all []string
	if s.function == nil || slices.Contains(within, name) {
		return []string{gap}
	}
	ast.Inspect(s.function, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i := range a.Lhs {
			if expression(a.Lhs[i]) == name {
				all = append(all, r.resolve(s, a.Rhs[i], append(slices.Clone(within), name))...)
			}
		}
		return true
	})
	if len(all) == 0 {
		return []string{gap}
	}
	return all
}

// returned returns what a call may say: fmt.Sprintf, or a function of the package.
func (r *messageReader) returned(s scope, call *ast.CallExpr, within []string) []string {
	name := s.called(call.Fun)
	if name == "fmt.Sprintf" && len(call.Args) > 0 {
		return r.resolve(s, call.Args[0], within)
	}
	var all []string
	if strings.HasSuffix(name, ".Error") || strings.HasSuffix(name, ".String") || slices.Contains(within, name) {
		return []string{gap}
	}
	for _, f := range r.functions[name] {
		if f.Body == nil || f.Type.Results == nil || expression(f.Type.Results.List[0].Type) != "string" {
			continue
		}
		of := scope{s.sourceFile, f, f}
		ast.Inspect(f, func(n ast.Node) bool {
			if ret, ok := n.(*ast.ReturnStmt); ok && len(ret.Results) > 0 {
				all = append(all, r.resolve(of, ret.Results[0], append(slices.Clone(within), name))...)
			}
			return true
		})
	}
	if len(all) == 0 {
		return []string{gap}
	}
	return all
}

var (
	verb   = regexp.MustCompile(`%[-+#0]*(\[\d\])?[\d.*]*[a-zA-Z]`)
	word   = regexp.MustCompile(`[A-Za-z]{2,}`)
	gaps   = regexp.MustCompile(`…(\s*…)*`)
	spaces = regexp.MustCompile(`\s+`)
	// context is what stands in front of another text.
	context = regexp.MustCompile(`^(…?[:;] *)+`)
)

// told is a text as pages have it: with an ellipsis for what is known only when the error is made,
// and without what only stands in front of another error.
func told(text string) string {
	text = strings.ReplaceAll(text, "%%", "\x01")
	text = strings.ReplaceAll(verb.ReplaceAllString(text, "…"), gap, "…")
	text = strings.NewReplacer("\x01", "%", "`", "'").Replace(text)
	text = gaps.ReplaceAllString(strings.TrimSpace(spaces.ReplaceAllString(text, " ")), "…")
	if text = context.ReplaceAllString(text, ""); strings.Contains(strings.TrimSuffix(text, ": …"), " ") {
		return text
	}
	return ""
}

// add keeps a text that says something, in so many words at least.
func (r *messageReader) add(s scope, text string, words int) {
	text = told(text)
	if len(word.FindAllString(text, -1)) >= words && !r.seen[text] {
		r.seen[text] = true
		r.found = append(r.found, message{s.name, text})
	}
}

// signals are errors that functions of the program tell each other, and that nobody else reads.
var signals = []string{
	"table facts needed", "values of expressions needed", "end of the statement needed", "statement that the server refuses", "something must be asked first",
	"the statements in front must be over first", "the end of the statement must be found first", "nothing to read now", "a row of another shard",
	"rule …: the columns of the table are needed", "too many parameters with those of the ids", "server sent a plain OK for a statement to prepare", "values whose types were never given",
	"idproxy segments 1", "idproxy workers 1", "idproxy fence 1", "idproxy store 1", "idproxy tunings 1", "idproxy notes 1", // the first lines of files
}

// row is a row of a table, or an item of a list, that begins with texts of errors.
var row = regexp.MustCompile("(?m)^(?:\\| (?:([0-9]+)(?: \\(([0-9A-Z]{5})\\))? )?(?:\\| )?|- )(`.*)$")

// described are the messages of a page, each with the number and SQL state that stand in front of it.
func described(page string) map[string]string {
	all := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		first, _, _ := strings.Cut(m[3], " | ")
		for _, text := range quoted.FindAllStringSubmatch(first, -1) {
			all[text[1]] = strings.TrimSpace(m[1] + " " + m[2])
		}
	}
	return all
}

// unexplained compares the messages with the page that has those for clients, and with the one that
// has all others. code gives the numbers of errors by their names in the source.
func unexplained(r *messageReader, clients, others string, code map[string]string) (wrong []string) {
	_, clients, _ = strings.Cut(clients, "\n## What a client sees, by number\n")
	clients, _, _ = strings.Cut(clients, "\n## ")
	forClients, forOthers := described(clients), described(others)
	for _, m := range r.found {
		if strings.HasPrefix(m.file, "idsource/sourcetest/") { // only tests use it
			continue
		}
		given, isClients := forClients[m.text]
		_, isOthers := forOthers[m.text]
		switch {
		case slices.Contains(signals, m.text):
		case isClients && isOthers:
			wrong = append(wrong, fmt.Sprintf("%s: on both pages: %s", m.file, m.text))
		case !isClients && (strings.HasPrefix(m.file, "proxy/clienterr/") || !isOthers):
			wrong = append(wrong, fmt.Sprintf("%s: not described: %s", m.file, m.text))
		}
		if name, state, _ := strings.Cut(r.numbers[m.text], " "); isClients && name != "" {
			if want := strings.TrimSpace(numberOf(name, code) + " " + state); given != want {
				wrong = append(wrong, fmt.Sprintf("%s: the page says it is error %q, it is %q: %s", m.file, given, want, m.text))
			}
		}
	}
	for _, page := range []map[string]string{forClients, forOthers} {
		for _, text := range slices.Sorted(maps.Keys(page)) {
			if !r.seen[text] {
				wrong = append(wrong, "no error says: "+text)
			}
		}
	}
	return wrong
}

func numberOf(name string, code map[string]string) string {
	if n, ok := code[name]; ok {
		return n
	}
	return name
}

var errorNumber = regexp.MustCompile(`(?m)^\s+(ER_\w+)(?: +uint16)? += +([0-9]+)$`)

// errorNumbers are those of servers, by the names that the protocol library has for them.
func errorNumbers(t *testing.T) map[string]string {
	t.Helper()
	list := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/go-mysql-org/go-mysql/mysql")
	list.Dir = root
	dir := assert.Of(list.Output()).Must(t)
	text := assert.Of(os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "errcode.go"))).Must(t)
	code := map[string]string{}
	for _, m := range errorNumber.FindAllStringSubmatch(string(text), -1) {
		code[m[1]] = m[2]
	}
	assert.MustTrue(t, len(code) >= 500, "%d numbers of errors are found", len(code))
	return code
}

// TestMessagesAreDescribed: docs/troubleshooting.md and docs/messages.md have each text that an
// error of the program can have, and no other; those that clients see have their numbers.
func TestMessagesAreDescribed(t *testing.T) {
	t.Parallel()
	r := assert.Of(readMessages(programFiles(t))).Must(t)
	assert.MustTrue(t, len(r.found) >= 500 && len(r.numbers) >= 30, "%d messages and %d numbers are found: is the source still read?", len(r.found), len(r.numbers))
	var pages [2]string
	for i, name := range []string{"docs/troubleshooting.md", "docs/messages.md"} {
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		pages[i] = string(text)
	}
	for _, w := range unexplained(r, pages[0], pages[1], errorNumbers(t)) {
		t.Error(w)
	}
}

// TestMessagesThatAreNotDescribed shows the check each kind of offender.
func TestMessagesThatAreNotDescribed(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"proxy/clienterr/errors.go": `package clienterr
			import "fmt"
			func New(code uint16, state, format string, args ...any) *MyError { return &MyError{Code: code, Message: fmt.Sprintf(format, args...)} }
			func Full(n int) *MyError { return New(mysql.ER_FULL, "08004", "Too many: %d at most", n) }`,
		"proxy/x.go": `package proxy
			import ("errors"; "fmt"; "idproxy/proxy/clienterr")
			const fault = "a fault that has a name"
			func f() error {
				then := "try it later"
				if g() { then = "take another one" }
				h(fault)
				return clienterr.New(7, "HY000", "it fails: %s; %s", err, then)
			}
			func h(why string) error { return i("%s and more", why) }
			func i(format string, args ...any) error { return wrong(fmt.Sprintf(format, args...)) }
			func k() (n int, why string) {
				if g() { return 0, "no number is in it" }
				return 1, ""
			}
			type pathError struct{ path string }
			func (e *pathError) Error() string { return e.path + " is no path" }
			func wrong(text string) error { return errors.New("it is wrong: " + text) }`,
	}
	const clients = "\n## What a client sees, by number\n| 5 (08004) | `Too many: … at most` | x |\n| 7 (HY000) | `it fails: …; …` | x |\n" +
		"| | `try it later`<br>`take another one` | x |\n| `it is wrong: …`<br>`… and more` | x |\n"
	const others = "- `… is no path`\n- `a fault that has a name`\n- `no number is in it`\n"
	code := map[string]string{"ER_FULL": "5"}
	check := func(files map[string]string, clients, others string) []string {
		t.Helper()
		r := assert.Of(readMessages(files)).Must(t)
		return unexplained(r, clients, others, code)
	}
	assert.Empty(t, "found in what is right", check(files, clients, others))
	for name, change := range map[string][2]string{
		"another text":             {"Too many: %d", "Enough: %d"},
		"another number":           {"mysql.ER_FULL", "mysql.ER_OTHER"},
		"another state":            {`"08004"`, `"HY000"`},
		"a call that is new":       {"then := ", `_ = clienterr.New(8, "HY000", "something else is wrong"); then := `},
		"an error that is new":     {"then := ", `_ = errors.New("something else is wrong"); then := `},
		"a struct that is new":     {"then := ", `_ = &clienterr.Refusal{Why: "something else is wrong"}; then := `},
		"a type that is an error":  {"then := ", `_ = protocolError("something else is wrong"); then := `},
		"what is put into another": {`"take another one"`, `"take another two"`},
		"through a helper":         {`h(fault)`, `h("a fault without a name")`},
		"through two helpers":      {`h(fault)`, `i("something else is wrong: %s", fault)`},
		"of a method":              {" is no path", " is no folder"},
		"of a constant":            {"that has a name", "that has another name"},
		"of a result":              {"no number is", "no digit is"},
		"an error that is gone":    {`return errors.New("it is wrong: " + text)`, `return nil`},
	} {
		changed := maps.Clone(files)
		for file, text := range files {
			changed[file] = strings.Replace(text, change[0], change[1], 1)
		}
		assert.MustTrue(t, !maps.Equal(changed, files), "%s: nothing changes", name)
		assert.True(t, check(changed, clients, others) != nil, "%s is not found", name)
	}
	if check(files, strings.ReplaceAll(clients, "| 5 (08004) | `Too many: … at most` | x |\n", ""), others+"- `Too many: … at most`\n") == nil {
		t.Error("an error for clients that only the page of the others has is not found")
	}
}
