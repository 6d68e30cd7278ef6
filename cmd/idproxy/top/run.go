package top

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// Run shows what c answers until the operator quits or ctx is done. A first answer must come; what
// comes later is asked once every period. screen is where it is drawn; nil: the terminal of the
// process.
func Run(ctx context.Context, c Client, period time.Duration, screen tcell.Screen) error {
	first, err := ask(ctx, c, Listeners)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	u := newUI(ctx, c, NewModel(first))
	if screen != nil {
		u.app.SetScreen(screen)
	}
	stop := context.AfterFunc(ctx, func() { u.app.QueueUpdate(u.app.Stop) })
	defer stop()
	u.background.Go(func() { u.follow(period) })
	u.draw()
	err = u.app.Run()
	stop()
	end()
	u.background.Wait()
	if err != nil {
		return fmt.Errorf("the terminal cannot be used, `idproxy status --watch` needs less of it: %w", err)
	}
	return nil
}

// ui draws a model. Its model and its parts belong to the goroutine of app, which runs what post is
// given.
type ui struct {
	ctx        context.Context
	client     Client
	app        *tview.Application
	background sync.WaitGroup
	wake       chan struct{} // asks now
	asked      atomic.Int64  // the tab whose list is asked for

	model    *Model
	selected [tabs]string // keys of rows that the operator moved to; empty: the first row, whichever that is
	drawing  bool         // the table is being filled

	pages *tview.Pages
	head  [3]*tview.TextView
	tabs  *tview.TextView
	table *tview.Table
	foot  *tview.Pages // keys, or the field of the filter
	keys  *tview.TextView
	field *tview.InputField
}

const (
	keysText = "F1 help  1-6 tab  < > r sort  / filter  Enter details  k close  p pause  q quit"
	helpText = `1 to 6, Tab     another tab
arrows, PgUp    move; left and right where columns do not fit
< and >         sort by the next column to the left or right
r               reverse the order
/               show rows with a text only; Esc shows all again
Enter           all of a row
k               close the session (with a token, or over the socket)
p, Space        pause; figures stay as they are
q, F10, Ctrl-C  quit

Figures per second are the difference of two answers. A dash: it
is not known, as for what has only just come. HIDDEN are questions
to the server that clients do not see. HELD is how long a command
was held that was decided on. LASTS is how long a source needs no
store.`
)

func newUI(ctx context.Context, c Client, m *Model) *ui {
	u := &ui{
		ctx: ctx, client: c, model: m, wake: make(chan struct{}, 1), app: tview.NewApplication(), pages: tview.NewPages(), tabs: line(),
		table: tview.NewTable(), foot: tview.NewPages(), keys: line(), field: tview.NewInputField(),
	}
	body := tview.NewFlex().SetDirection(tview.FlexRow)
	for i := range u.head {
		u.head[i] = line()
		body.AddItem(u.head[i], 1, 0, false)
	}
	u.table.SetFixed(1, 0).SetSelectable(true, false).SetEvaluateAllRows(true)
	u.table.SetBackgroundColor(tcell.ColorDefault)
	u.table.SetSelectedStyle(tcell.StyleDefault.Reverse(true))
	u.table.SetSelectionChangedFunc(u.select_)
	u.table.SetSelectedFunc(func(int, int) { u.details() })
	u.field.SetLabel("/").SetFieldBackgroundColor(tcell.ColorDefault).SetFieldTextColor(tcell.ColorDefault).SetLabelColor(tcell.ColorDefault)
	u.field.SetBackgroundColor(tcell.ColorDefault)
	u.field.SetChangedFunc(func(text string) { u.model.SetFilter(text); u.draw() })
	u.field.SetDoneFunc(func(key tcell.Key) {
		if key == tcell.KeyEscape {
			u.field.SetText("")
		}
		u.foot.SwitchToPage("keys")
		u.app.SetFocus(u.table)
	})
	u.foot.AddPage("filter", u.field, true, false).AddPage("keys", u.keys, true, true)
	body.AddItem(u.tabs, 1, 0, false).AddItem(u.table, 0, 1, true).AddItem(u.foot, 1, 0, false)
	u.say(keysText, Plain)
	u.pages.AddPage("body", body, true, true)
	u.app.SetRoot(u.pages, true).SetFocus(u.table).SetInputCapture(u.key)
	return u
}

func line() *tview.TextView {
	v := tview.NewTextView().SetDynamicColors(true).SetWrap(false)
	v.SetBackgroundColor(tcell.ColorDefault).SetBorder(false)
	return v.SetTextColor(tcell.ColorDefault)
}

// follow asks again and again, until ctx is done.
func (u *ui) follow(period time.Duration) {
	for tick := time.NewTimer(period); ; tick.Reset(period) {
		select {
		case <-u.ctx.Done():
			return
		case <-u.wake:
		case <-tick.C:
		}
		s, err := ask(u.ctx, u.client, Tab(u.asked.Load()))
		u.post(func() {
			if err != nil {
				u.model.Lose(err)
			} else {
				u.model.Take(s)
			}
			u.draw()
		})
	}
}

// post has the goroutine of app run a function and draw. It does not wait for one that has ended.
func (u *ui) post(f func()) {
	done := make(chan struct{})
	go func() {
		u.app.QueueUpdateDraw(f)
		close(done)
	}()
	select {
	case <-done:
	case <-u.ctx.Done():
	}
}

func (u *ui) key(e *tcell.EventKey) *tcell.EventKey {
	if page, _ := u.pages.GetFrontPage(); page != "body" {
		if page != "close" && (e.Key() == tcell.KeyEscape || e.Key() == tcell.KeyEnter || e.Rune() == 'q') {
			u.shut(page)
			return nil
		}
		return e
	}
	if u.field.HasFocus() {
		return e
	}
	switch e.Key() {
	case tcell.KeyTab:
		u.show((u.model.Tab + 1) % tabs)
	case tcell.KeyBacktab:
		u.show((u.model.Tab + tabs - 1) % tabs)
	case tcell.KeyEscape:
		u.field.SetText("")
		u.say(keysText, Plain)
	case tcell.KeyF1:
		u.open("help", helpText)
	case tcell.KeyF10:
		u.app.Stop()
	case tcell.KeyRune:
		return u.letter(e)
	default:
		return e
	}
	return nil
}

func (u *ui) letter(e *tcell.EventKey) *tcell.EventKey {
	switch r := e.Rune(); r {
	case '1', '2', '3', '4', '5', '6':
		u.show(Tab(r - '1'))
	case 'q':
		u.app.Stop()
	case '?', 'h':
		u.open("help", helpText)
	case 'p', ' ':
		u.model.Paused = !u.model.Paused
	case '<':
		u.model.SortBy(-1)
	case '>':
		u.model.SortBy(1)
	case 'r':
		u.model.Reverse()
	case '/':
		u.foot.SwitchToPage("filter")
		u.app.SetFocus(u.field)
		return nil
	case 'k':
		u.askToClose()
	default:
		return e
	}
	u.draw()
	return nil
}

// show goes to another tab, and has its list asked for.
func (u *ui) show(t Tab) {
	u.model.Tab = t
	u.asked.Store(int64(t))
	u.field.SetText(u.model.Filter())
	u.table.SetOffset(0, 0)
	u.say(keysText, Plain)
	u.draw()
	select {
	case u.wake <- struct{}{}:
	default: // it is about to ask
	}
}

// select_ notes which row the operator moved to, so that it stays selected where it goes.
func (u *ui) select_(row, _ int) {
	if u.drawing {
		return
	}
	u.selected[u.model.Tab] = ""
	if row > 1 {
		u.selected[u.model.Tab] = u.keyOf(row)
	}
}

// keyOf returns the key of a row of the table; empty: there is no such row.
func (u *ui) keyOf(row int) string {
	key, _ := u.table.GetCell(row, 0).GetReference().(string)
	return key
}

// current returns the key of the row that is selected.
func (u *ui) current() string {
	row, _ := u.table.GetSelection()
	return u.keyOf(row)
}

func (u *ui) details() {
	if lines := u.model.Details(u.current()); lines != nil {
		u.open("details", strings.Join(lines, "\n"))
	}
}

// open shows a text above all, until a key shuts it.
func (u *ui) open(page, text string) {
	v := tview.NewTextView().SetText(text).SetWordWrap(true).SetTextColor(tcell.ColorDefault)
	v.SetBorder(true).SetTitle(" " + page + ", Esc goes back ").SetBackgroundColor(tcell.ColorDefault)
	v.SetBorderColor(tcell.ColorDefault).SetTitleColor(tcell.ColorDefault)
	u.pages.AddPage(page, v, true, true)
	u.app.SetFocus(v)
}

func (u *ui) shut(page string) {
	u.pages.RemovePage(page)
	u.app.SetFocus(u.table)
}

// askToClose asks whether the selected session is to be closed, and closes it.
func (u *ui) askToClose() {
	s, ok := u.model.Session(u.current())
	switch {
	case u.model.Tab != Sessions:
		u.say("k closes a session of the tab Sessions", Loud)
		return
	case !u.client.MayClose():
		u.say("closing a session takes the token (IDPROXY_ADMIN_TOKEN) or the unix socket", Loud)
		return
	case !ok:
		u.say("there is no such session any more", Loud)
		return
	}
	name := printable(fmt.Sprintf("session %d of %s from %s", s.ID, s.User, s.Client))
	question := tview.NewModal().SetText(tview.Escape("Close " + name + "?\nIts connection is cut at once.")).AddButtons([]string{"Keep", "Close"})
	question.SetDoneFunc(func(_ int, label string) {
		u.shut("close")
		if label == "Close" {
			u.say("closing "+name, Plain)
			u.background.Go(func() { u.close(s.ID, name) })
		}
	})
	question.SetInputCapture(func(e *tcell.EventKey) *tcell.EventKey {
		switch e.Rune() {
		case 'y', 'Y':
			u.shut("close")
			u.background.Go(func() { u.close(s.ID, name) })
			return nil
		case 'n', 'N', 'q':
			u.shut("close")
			return nil
		}
		return e
	})
	u.pages.AddPage("close", question, true, true)
	u.app.SetFocus(question)
}

func (u *ui) close(id uint64, name string) {
	ctx, cancel := context.WithTimeout(u.ctx, askTime)
	defer cancel()
	err := u.client.CloseSession(ctx, id)
	u.post(func() {
		if err != nil {
			u.say(fmt.Sprintf("%s is not closed: %v", name, err), Alarm)
			return
		}
		u.say(name+" is closed", Plain)
	})
}

// say shows a text at the bottom.
func (u *ui) say(text string, tone Tone) { u.keys.SetText(toned(printable(text), tone)) }

// toned marks a text for tview.
func toned(text string, tone Tone) string {
	return map[Tone]string{Plain: "", Loud: "[yellow]", Alarm: "[red::b]"}[tone] + tview.Escape(text)
}

// draw puts the model on the screen.
func (u *ui) draw() {
	columns, rows, more := u.model.Table()
	head := u.model.Head()
	if more > 0 {
		head[2].Text = fmt.Sprintf("the first %d of %d rows, / filters; %s", len(rows), len(rows)+more, head[2].Text)
	}
	for i, l := range head {
		u.head[i].SetText(toned(l.Text, l.Tone))
	}
	var names strings.Builder
	for i, name := range tabNames {
		style, end := "[::d]", "[::-]"
		if Tab(i) == u.model.Tab {
			style = "[::br]"
		}
		fmt.Fprintf(&names, "%s %d %s %s ", style, i+1, name, end)
	}
	if f := u.model.Filter(); f != "" {
		names.WriteString("[yellow]/" + tview.Escape(printable(f)))
	}
	u.tabs.SetText(names.String())
	u.fill(columns, rows)
}

// fill puts the rows into the table.
func (u *ui) fill(columns []Column, rows []Row) {
	u.drawing = true
	defer func() { u.drawing = false }()
	top, left := u.table.GetOffset()
	u.table.Clear()
	for i, c := range columns {
		u.table.SetCell(0, i, &tview.TableCell{
			Text: tview.Escape(c.Name), Align: align(c.Number), NotSelectable: true, Transparent: true,
			Color: tcell.ColorDefault, Attributes: tcell.AttrBold | tcell.AttrUnderline,
		})
	}
	selected := 1
	for i, r := range rows {
		for j, c := range columns {
			cell := &tview.TableCell{Text: toned(r.Cells[j].Text, r.Cells[j].Tone), Align: align(c.Number), Transparent: true, Color: tcell.ColorDefault, Reference: r.Key}
			if j == len(columns)-1 {
				cell.Expansion = 1
			}
			u.table.SetCell(i+1, j, cell)
		}
		if r.Key == u.selected[u.model.Tab] {
			selected = i + 1
		}
	}
	u.table.SetOffset(top, left) // else a table that was short goes to its end when it grows
	u.table.Select(selected, 0)
}

func align(number bool) int {
	if number {
		return tview.AlignRight
	}
	return tview.AlignLeft
}
