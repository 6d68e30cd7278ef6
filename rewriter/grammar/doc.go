// Package grammar is a second opinion on what package rewriter reads: TiDB's parser of MySQL's
// grammar.
//
// A [Reader] is shown each statement and the plan for it. The first time it sees a statement's
// shape, TiDB's parser reads the statement before and after: the two must differ by the ids that
// the plan speaks of, and in nothing else. Then the shape is trusted, and a statement of it costs a
// look into a table. Shapes, and the short statements that stand for long ones, are made by
// [rewriter.Plan.Shapes] and [rewriter.Plan.Reduce].
//
// TiDB's grammar is neither server's. What it cannot read, such as RETURNING, row aliases and
// dollar quotes, stands as the plan read it, for a plan comes only of a statement whose every token
// was recognised. What it reads otherwise is refused.
package grammar
