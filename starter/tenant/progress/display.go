package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rivo/uniseg"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"holdfast.dev/holdfast/starter/terminal"
)

// Display shows a person how far something is, until it is closed.
type Display struct {
	show  func(State)
	close func()
}

// Show shows the present state.
func (d *Display) Show(now State) { d.show(now) }

// Close leaves the terminal clean for what is printed next.
func (d *Display) Close() { d.close() }

// NewDisplay shows a bar if a person watches and out is a terminal, and otherwise lines.
func NewDisplay(out io.Writer, watched bool) *Display {
	file, is := out.(*os.File)
	if is && watched && term.IsTerminal(int(file.Fd())) {
		return newBar(file)
	}
	return NewLines(out, time.Now)
}

// quiet is for how long the lines do not repeat a phase of which only the numbers have changed.
const quiet = 10 * time.Second

// NewLines shows a line for each phase, and for numbers that change at most every ten seconds, by this clock.
func NewLines(out io.Writer, now func() time.Time) *Display {
	began := now()
	var last State
	var said time.Time
	return &Display{
		show: func(state State) {
			phase := state.Phase == last.Phase && state.Message == last.Message
			if state == last || (phase && now().Sub(said) < quiet) {
				return
			}
			last, said = state, now()
			fmt.Fprintf(out, "[%s] %s\n", said.Sub(began).Round(time.Second), terminal.Printable(state.String()))
		},
		close: func() {},
	}
}

const (
	barWidth = 20
	tick     = 200 * time.Millisecond
	// besides is what the bar, the percentage and the time need of a terminal's width.
	besides    = barWidth + 20
	leastWords = 10
	usualWidth = 80
)

// bar shows the items of the API as a bar, and the state in words before it. Until the number of items is known it spins. In a
// terminal that is too narrow there are the words alone.
type bar struct {
	out   *os.File
	drawn *progressbar.ProgressBar
	state State
}

func newBar(out *os.File) *Display {
	b := &bar{out: out, drawn: progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(barWidth), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish(), progressbar.OptionUseANSICodes(true),
		progressbar.OptionSpinnerType(14), progressbar.OptionSetSpinnerChangeInterval(0), // it is drawn by us alone
	)}
	var mutex sync.Mutex
	closed, ended := make(chan struct{}), make(chan struct{})
	go func() { // time passes, and the terminal may be another size, although nothing happens
		defer close(ended)
		for {
			select {
			case <-closed:
				return
			case <-time.After(tick):
				mutex.Lock()
				b.draw()
				mutex.Unlock()
			}
		}
	}()
	return &Display{
		show: func(state State) {
			mutex.Lock()
			defer mutex.Unlock()
			b.state = state
			b.draw()
		},
		close: func() {
			close(closed)
			<-ended // nothing is drawn any more
			fmt.Fprint(out, eraseLine)
		},
	}
}

// eraseLine goes back to the beginning of an empty line.
const eraseLine = "\x1b[2K\r"

func (b *bar) draw() {
	width, _, err := term.GetSize(int(b.out.Fd()))
	if err != nil || width <= 0 {
		width = usualWidth
	}
	words := terminal.Printable(b.state.String())
	if width < besides+leastWords {
		fmt.Fprint(b.out, eraseLine, cut(words, max(width-1, 1)))
		return
	}
	b.drawn.Describe(cut(words, width-besides))
	if items := b.state.Items; items.Total > 0 {
		_ = b.drawn.Set(0) // Velero's last total may be what is done already, which would end the bar for good
		b.drawn.ChangeMax(items.Total)
		_ = b.drawn.Set(min(items.Done, items.Total-1)) // at its end it would close itself
	}
	_ = b.drawn.RenderBlank()
}

// cut shortens a text to so many cells of a terminal.
func cut(text string, to int) string {
	if uniseg.StringWidth(text) <= to {
		return text
	}
	var short strings.Builder
	left := to - 1
	for letters := uniseg.NewGraphemes(text); letters.Next() && letters.Width() <= left; left -= letters.Width() {
		short.WriteString(letters.Str())
	}
	return short.String() + "…"
}
