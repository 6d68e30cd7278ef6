package rewriter

import (
	"bytes"
	"maps"
	"strings"

	"idproxy/ascii"
)

// CallsUnknown reports whether a text may call a function that is none of the servers' own: one
// that is stored or loaded can set variables of the session. table is the one that the text inserts
// into: its name may stand in front of the list of columns. Strings and comments are not told from
// code.
func CallsUnknown(text, table []byte) bool {
	for at := 0; ; at++ {
		next := bytes.IndexByte(text[at:], '(')
		if next < 0 {
			return false
		}
		at += next
		if at > 0 && text[at-1] == ',' { // between rows, mostly
			continue
		}
		switch word, certain := callee(text[:at], true); {
		case word == nil:
		case table != nil && bytes.Equal(word, table):
			table = nil // further on it is a function
		case certain, !isOf(ownWords, word):
			return true
		}
	}
}

// mayCall reports whether the parenthesis at text[at] may begin the arguments of a function that is
// none of the servers' own. text has no line comments.
func mayCall(text []byte, at int) bool {
	word, certain := callee(text[:at], false)
	return word != nil && (certain || !isOf(ownWords, word))
}

// lineComments reports whether a text may have comments that end with their line.
func lineComments(text []byte) bool {
	return bytes.IndexByte(text, '#') >= 0 || bytes.Contains(text, []byte("--"))
}

// callee returns the word that a text ends with, nil for none. certain: the word is none of the
// grammar, because it is quoted, follows a schema, or stands beside a comment. remarks: the text
// may have line comments.
func callee(text []byte, remarks bool) (word []byte, certain bool) {
	text, hidden := beforeBlanks(text, remarks)
	switch {
	case hidden:
		return text, true
	case len(text) == 0:
		return nil, false
	}
	end := len(text) - 1
	switch last := text[end]; last {
	case ',': // between rows
		return nil, false
	case '`', '"':
		begin := bytes.LastIndexByte(text[:end], last)
		return text[begin+1 : end], true
	}
	begin := end + 1
	for begin > 0 && (ascii.IsWord(text[begin-1]) || text[begin-1] >= 0x80) {
		begin--
	}
	if begin > end {
		return nil, false
	}
	word = text[begin:]
	before, hidden := beforeBlanks(text[:begin], remarks)
	return word, hidden || len(before) > 0 && before[len(before)-1] == '.'
}

// beforeBlanks returns a text without the blanks at its end. hidden: a comment may stand among
// them, or in front of them.
func beforeBlanks(text []byte, remarks bool) (rest []byte, hidden bool) {
	end, line := len(text), false
	for end > 0 && classes[text[end-1]] == classBlank {
		line = line || text[end-1] == '\n'
		end--
	}
	rest = text[:end]
	if line && remarks {
		return rest, lineComments(rest[bytes.LastIndexByte(rest, '\n')+1:])
	}
	return rest, end > 1 && rest[end-1] == '/' && rest[end-2] == '*'
}

// harmless reports whether a word in front of a parenthesis does nothing but tell a value: a word
// of the grammar, or a function of the servers that changes nothing when it is called once more
// than natively. Any other may be a stored or loaded function.
func harmless(word []byte) bool { return isOf(grammarWords, word) || isOf(harmlessFunctions, word) }

func isOf(words map[string]struct{}, word []byte) bool {
	var lower [32]byte // longer than any of them
	if len(word) > len(lower) {
		return false
	}
	for i, c := range word {
		if c-'A' <= 'Z'-'A' {
			c |= 0x20
		}
		lower[i] = c
	}
	_, ok := words[string(lower[:len(word)])]
	return ok
}

// grammarWords stand in front of a parenthesis as a part of the grammar, types of CAST among them.
var grammarWords = wordList(`
all and any as between by case collate columns cross distinct distinctrow div else escape except exists for force from group having
ignore in index inner intersect interval is join key lateral like limit match against minus mod natural not of on or order over partition
path recursive regexp rlike row select separator some straight_join then union use using values value when where window with xor
bigint binary bit char character date datetime dec decimal double fixed float int integer json mediumint national nchar numeric real
signed smallint text time timestamp tinyint unsigned varbinary varchar vector year`)

// harmlessFunctions has none that takes locks, waits, sets a variable or a sequence (GET_LOCK,
// SLEEP, BENCHMARK, NEXTVAL, SETVAL, ...), and none that tells of the statement before (ROW_COUNT,
// FOUND_ROWS), for a question comes in between.
var harmlessFunctions = wordList(`
abs acos add_months adddate addtime aes_decrypt aes_encrypt any_value ascii asin atan atan2 avg bin bin_to_uuid bit_and bit_count
bit_length bit_or bit_xor cast ceil ceiling char_length character_length charset chr coalesce coercibility collation column_check
column_create column_exists column_get column_json column_list compress concat concat_ws connection_id conv convert convert_tz cos cot
count crc32 crc32c cume_dist curdate current_date current_role current_time current_timestamp current_user curtime database date_add
date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear decode default degrees dense_rank elt encode encrypt exp
export_set extract extractvalue field find_in_set first_value floor format format_bytes format_pico_time from_base64 from_days
from_unixtime geometrycollection greatest group_concat grouping hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert
instr is_free_lock is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_used_lock is_uuid isnull json_array json_array_append
json_array_insert json_array_intersect json_arrayagg json_compact json_contains json_contains_path json_depth json_detailed json_equals
json_exists json_extract json_insert json_key_value json_keys json_length json_loose json_merge json_merge_patch json_merge_preserve
json_normalize json_object json_object_filter_keys json_object_to_array json_objectagg json_overlaps json_pretty json_query json_quote
json_remove json_replace json_schema_valid json_schema_validation_report json_search json_set json_storage_free json_storage_size
json_table json_type json_unquote json_valid json_value lag last_day last_insert_id last_value lcase lead least left length lengthb
linestring ln load_file localtime localtimestamp locate log log10 log2 lower lpad ltrim make_set makedate maketime max md5 median
microsecond mid min minute month monthname multilinestring multipoint multipolygon name_const natural_sort_key now nth_value ntile nullif
nvl nvl2 oct octet_length ord percent_rank percentile_cont percentile_disc period_add period_diff pi point polygon position pow power
quarter quote radians rand random_bytes rank regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right round
row_number rpad rtrim schema sec_to_time second session_user sformat sha sha1 sha2 sign sin soundex space sqrt st_area st_asbinary
st_asgeojson st_astext st_aswkb st_aswkt st_buffer st_centroid st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint
st_distance st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring st_geohash st_geomfromgeojson st_geomfromtext
st_geomfromwkb st_geometryfromtext st_geometryn st_geometrytype st_interiorringn st_intersection st_intersects st_isclosed st_isempty
st_issimple st_isvalid st_latfromgeohash st_latitude st_length st_linefromtext st_longfromgeohash st_longitude st_makeenvelope
st_numgeometries st_numinteriorrings st_numpoints st_overlaps st_pointfromgeohash st_pointfromtext st_pointn st_polyfromtext st_simplify
st_srid st_startpoint st_swapxy st_symdifference st_touches st_transform st_union st_validate st_within st_x st_y std stddev stddev_pop
stddev_samp str_to_date strcmp subdate substr substring substring_index subtime sum sys_guid sysdate system_user tan time_format
time_to_sec timediff timestampadd timestampdiff to_base64 to_char to_days to_seconds trim truncate ucase uncompress uncompressed_length
unhex unix_timestamp updatexml upper user utc_date utc_time utc_timestamp uuid uuid_short uuid_to_bin uuid_v4 uuid_v7 var_pop var_samp
variance vec_distance vec_distance_cosine vec_distance_euclidean vec_fromtext vec_totext version week weekday weekofyear weight_string
yearweek`)

// tellingFunctions are the servers' own functions that are not harmless, and that change nothing
// which outlives them but locks and sequences.
var tellingFunctions = wordList(`
benchmark found_rows get_lock lastval master_gtid_wait master_pos_wait nextval release_all_locks release_lock row_count setval sleep
source_pos_wait wait_for_executed_gtid_set`)

// ownWords are all of these.
var ownWords = union(grammarWords, harmlessFunctions, tellingFunctions)

func union(sets ...map[string]struct{}) map[string]struct{} {
	all := map[string]struct{}{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

// reservedWords stand in an expression and are no columns' names.
var reservedWords = wordList(`
all and any as asc between binary by case collate current_date current_time current_timestamp default desc distinct div else exists false
from in interval is like limit localtime mod not null on or order regexp rlike select then true union using values when where xor end`)

// aggregates make of a SELECT one that may give one row for many; also OVER, whose functions are
// run over all rows.
var aggregates = wordList(`
any_value avg bit_and bit_or bit_xor count group_concat json_arrayagg json_objectagg max median min over percentile_cont percentile_disc
std stddev stddev_pop stddev_samp st_collect sum var_pop var_samp variance`)

// dividing are those of them whose value has more digits than its type says.
var dividing = wordList("avg std stddev stddev_pop stddev_samp var_pop var_samp variance median percentile_cont percentile_disc")

func wordList(words string) map[string]struct{} {
	set := map[string]struct{}{}
	for word := range strings.FieldsSeq(words) {
		set[word] = struct{}{}
	}
	return set
}
