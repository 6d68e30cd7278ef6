package observability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// aBrowser is why tests of the page are wide.
const aBrowser = "it needs a browser"

// browse starts a headless Chromium, in a wide run. Whatever the page says on its console as an error
// fails the test.
func browse(t *testing.T) context.Context {
	t.Helper()
	width.Wide(t, aBrowser)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page threw: %s", ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.APITypeError {
				t.Errorf("the page's console: %s", ev.Args[0].Value)
			}
		case *cdplog.EventEntryAdded:
			assert.True(t, ev.Entry.Level != cdplog.LevelError || strings.HasSuffix(ev.Entry.URL, "/api/v1/reload"), "the browser: %s %s", ev.Entry.Text, ev.Entry.URL) // of a file with a mistake
		}
	})
	assert.Must(t, chromedp.Run(ctx, cdplog.Enable()))
	return ctx
}

// until waits for a piece of JavaScript to become true.
func until(t *testing.T, ctx context.Context, js string) { //nolint:revive // the test first
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Poll(js, nil, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(0))); err != nil {
		var text string
		_ = chromedp.Run(context.WithoutCancel(ctx), chromedp.Evaluate("document.body.innerText", &text)) // for the message alone
		t.Fatalf("never became true: %s: %v\n%s", js, err, text)
	}
}

// shows is JavaScript that says whether an element shows a text.
func shows(id, text string) string {
	return fmt.Sprintf("document.getElementById(%q).innerText.includes(%q)", id, text)
}

// accessible runs axe-core and reports what it finds.
func accessible(t *testing.T, ctx context.Context, name string) { //nolint:revive // the test first
	t.Helper()
	script, err := os.ReadFile("../../.tools/browser/node_modules/axe-core/axe.min.js")
	assert.MustTrue(t, err == nil, "%v: make test installs it", err)
	var found []string
	err = chromedp.Run(ctx, chromedp.Evaluate(string(script), nil), chromedp.Evaluate(
		`axe.run().then(r => r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html.slice(0, 120)).join(" | ")))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	assert.Must(t, err)
	for _, f := range found {
		t.Errorf("%s: axe-core: %s", name, f)
	}
}

// picture keeps what the page looks like, where IDPROXY_PICTURES names a folder.
func picture(t *testing.T, ctx context.Context, name string) { //nolint:revive // the test first
	t.Helper()
	var png []byte
	assert.Must(t, chromedp.Run(ctx, chromedp.FullScreenshot(&png, 100)))
	if dir := os.Getenv("IDPROXY_PICTURES"); dir != "" {
		assert.Must(t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
	}
}

// TestPage looks at the status page as an operator does: figures move while rows go in, a refused
// INSERT shows with its reason, a store that is gone shows with how long the ids last, and it comes
// back.
func TestPage(t *testing.T) {
	width.Wide(t, aBrowser)
	server := harness.MariaDB(t)
	db, kept := harness.Database(t, server), harness.Database(t, server)
	store := newGate(t, server.Addr)
	dsn := harness.StoreDSN(server, kept)
	assert.MustTrue(t, strings.Contains(dsn, server.Addr), "no address in %s", dsn)
	w := start(t, server, db, fmt.Sprintf(`
stores:  {main: {mysql: {dsn: %q}}}
sources:
  order_id: {segment: {store: main, step: 1000, max_step: 1000}}
  event_id: {snowflake: {worker: 7}}
rules:
  - {table: %[2]s.orders, column: id, source: order_id}
  - {table: %[2]s.events, column: id, source: event_id}
  - {table: %[2]s.strict, column: id, source: order_id, explicit: reject}
`, strings.Replace(dsn, server.Addr, store.addr, 1), db))
	pool := w.open(t, 4)
	for _, table := range []string{"orders", "events", "strict"} {
		harness.MustExec(t, pool, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, note VARCHAR(40))")
	}
	insert := func(n int) {
		for i := range n {
			for _, table := range []string{"orders", "events"} {
				if _, err := pool.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (note) VALUES ('n%d')", table, i)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}
	ctx := browse(t)
	assert.Must(t, chromedp.Run(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.admin+"/")))
	until(t, ctx, `document.getElementById("state").innerText === "ready"`)
	insert(300)
	until(t, ctx, shows("rules", "300"))
	until(t, ctx, shows("sources", "700\n")+"||"+shows("sources", "700,"))
	until(t, ctx, `[...document.querySelectorAll("#sources h3")].map(h => h.innerText).join() === "order_id,event_id"`)
	until(t, ctx, `document.querySelector("#sources meter").value > 0`)
	until(t, ctx, shows("stores", "answers"))

	assert.Of(pool.ExecContext(t.Context(), "INSERT INTO strict (id, note) VALUES (424242, 'secret-in-a-literal')")).Fails(t, "explicit: reject let an id through", "")
	until(t, ctx, shows("refusals", "explicit_id"))
	until(t, ctx, shows("events", "statement refused"))
	until(t, ctx, shows("rules", "1 explicit_id"))

	// The plots have a sample each ten seconds, and more rows between two of them.
	insert(50)
	until(t, ctx, `document.querySelectorAll("#sources svg.plot path.under").length > 0`)
	until(t, ctx, `document.querySelectorAll("#now svg.plot path.under").length === 3`)
	until(t, ctx, `[...document.querySelectorAll("#now .axis")].every(a => /^(\d\d:\d\d){4}now$/.test(a.textContent)) && document.querySelectorAll("#now .axis").length === 2`)
	until(t, ctx, shows("states", "idle"))
	until(t, ctx, `/Fetch, p50 and p99\s+[\d.]+ [µm]?s, [\d.]+ [µm]?s/.test(document.getElementById("sources").innerText)`)
	until(t, ctx, `[...document.querySelectorAll("#actions button")].every(b => b.disabled)`)
	until(t, ctx, shows("done", "admin.token"))
	for _, look := range []struct {
		name  string
		width int64
		dark  string
	}{{"light", 1280, "light"}, {"dark", 1280, "dark"}, {"phone", 400, "light"}, {"phone-dark", 400, "dark"}} {
		err := chromedp.Run(ctx, chromedp.EmulateViewport(look.width, 900),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.dark}}))
		assert.Must(t, err)
		accessible(t, ctx, look.name)
		picture(t, ctx, "page-"+look.name)
		var wide bool
		err = chromedp.Run(ctx, chromedp.Evaluate("document.documentElement.scrollWidth > innerWidth", &wide))
		assert.True(t, err == nil && !wide, "%s: the page is wider than the window (%v)", look.name, err)
	}
	assert.Must(t, chromedp.Run(ctx, chromedp.EmulateViewport(1280, 900)))

	store.shut()
	until(t, ctx, shows("sources", "store fails, ids in memory go on"))
	until(t, ctx, `document.getElementById("stores").innerText.includes("refused")`)
	picture(t, ctx, "page-store-down")
	insert(300) // of those in memory
	for i := range 1000 {
		if _, err := pool.ExecContext(t.Context(), "INSERT INTO orders (note) VALUES ('last')"); err != nil {
			t.Logf("the ids ended after %d more", i)
			break
		}
	}
	until(t, ctx, `document.getElementById("state").innerText === "not ready"`)
	until(t, ctx, shows("problems", "source order_id"))
	status, body := w.get(t, "/readyz")
	assert.True(t, status == 503 && strings.Contains(body, "order_id"), "readyz: %d %s", status, body)
	store.open()
	until(t, ctx, `document.getElementById("state").innerText === "ready"`)
	insert(1)
	until(t, ctx, shows("stores", "answers"))

	body = strings.ReplaceAll(w.answer(t, "/"), "http://www.w3.org/2000/svg", "") // the name of a language
	assert.True(t, !strings.Contains(body, "http:") && !strings.Contains(body, "https:") && !strings.Contains(body, `"//`), "the page names an address outside")
	var text string
	assert.Must(t, chromedp.Run(ctx, chromedp.Evaluate("document.documentElement.outerHTML", &text)))
	for _, secret := range []string{"secret-in-a-literal", "424242", dsn[:strings.IndexByte(dsn, '@')]} {
		assert.True(t, !strings.Contains(text, secret), "the page shows %q", secret)
	}
}

// TestPageActions drains, resumes and reloads by the buttons of the page, which take the token.
func TestPageActions(t *testing.T) {
	width.Wide(t, aBrowser)
	server := harness.MariaDB(t)
	w := adminOf(t, harness.StartProxy(t, "instance: proxy-a\nadmin: {listen: 127.0.0.1:0, token: s3cret}\n"+harness.OneListener(server.Addr)), server, "")
	ctx := browse(t)
	press := func(button, then string) {
		t.Helper()
		assert.Must(t, chromedp.Run(ctx, chromedp.Click("#"+button, chromedp.ByQuery)))
		until(t, ctx, then)
	}
	err := chromedp.Run(ctx, network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Authorization": "Bearer s3cret"}),
		chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.admin+"/"))
	assert.Must(t, err)
	until(t, ctx, `document.title === "proxy-a – idproxy" && document.getElementById("instance").innerText === "proxy-a"`)
	until(t, ctx, `!document.getElementById("drain").disabled && document.getElementById("resume").disabled`)
	press("reload", shows("done", "nothing has changed"))
	assert.Must(t, os.WriteFile(w.ConfigPath, []byte("listeners: []\n"), 0o600))
	press("reload", shows("done", "listeners"))
	until(t, ctx, shows("problems", "configuration not reloaded"))
	press("drain", `document.getElementById("sure").open`)
	accessible(t, ctx, "dialog")
	press("sure-no", `!document.getElementById("sure").open`)
	press("drain", `document.getElementById("sure").open`)
	press("sure-yes", shows("state", "drains")+`&& document.getElementById("drain").disabled && document.title.startsWith("! ")`)
	press("resume", shows("state", "ready")+`&& document.getElementById("resume").disabled`)
}
