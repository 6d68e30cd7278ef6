package rewriter

// Kind is what the first words of a statement say it is.
type Kind uint8

// The kinds of statement that a rule or the session's tracked state is concerned with, and Other for the rest.
const (
	Other    Kind = iota // SELECT, UPDATE, COMMIT, SHOW, EXPLAIN, CREATE PROCEDURE/TRIGGER/EVENT/FUNCTION, ...
	Insert               // INSERT
	Replace              // REPLACE
	Load                 // LOAD DATA, LOAD XML
	Prepare              // PREPARE .. FROM
	Execute              // EXECUTE, EXECUTE IMMEDIATE
	Call                 // CALL
	Set                  // SET of variables
	Use                  // USE
	DDL                  // CREATE, ALTER, DROP, RENAME, TRUNCATE of anything but a routine
	Compound             // may hide an INSERT: BEGIN NOT ATOMIC, IF, SET STATEMENT .. FOR, ANALYZE INSERT, ...
)

// Name is a possibly qualified table name without its quotes. The bytes are slices of the text, or a small copy when a
// quote was doubled, and valid as long as the text is.
type Name struct{ Schema, Table []byte }

// Head is what [ReadHead] finds.
type Head struct {
	Kind      Kind
	Target    Name // Insert, Replace, Load: the table; Use: the Schema; CREATE or DROP TEMPORARY TABLE: the first table
	Temporary bool // CREATE [OR REPLACE] TEMPORARY TABLE or DROP TEMPORARY TABLE
	Create    bool // CREATE
	Drop      bool // DROP
}

// ReadHead reads the first words of one statement from a text that may be only its beginning. more is true when the
// text ends before kind and target are certain; an empty Target.Table with more false could not be read.
func ReadHead(text []byte, m Mode) (h Head, more bool) { return Head{}, false }
