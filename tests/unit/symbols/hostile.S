/* Three functions, whose DWARF data would take for ever to be gone through, and one after
 * them: types that have the next one twice as a member, and scopes whose first child is
 * their sibling too. */
  .text
  .globl hostile_copies, hostile_contents, hostile_result, harmless
  .type hostile_copies, @function
  .type hostile_contents, @function
  .type hostile_result, @function
  .type harmless, @function
hostile_copies:
  ret
hostile_contents:
  ret
hostile_result:
  ret
harmless:
  ret

#define DEPTH 40
#define CHILDREN 1
#define NO_CHILDREN 0

/* Attributes and forms. */
#define NAME 0x03, 0x08 /* string */
#define TYPE 0x49, 0x13 /* ref4 */
#define SIBLING 0x01, 0x13
#define LOW_PC 0x11, 0x01 /* addr */
#define HIGH_PC 0x12, 0x06 /* data4 */
#define BYTE_SIZE 0x0b, 0x0b /* data1 */
#define LOCATION 0x38, 0x0b
#define ENCODING 0x3e, 0x0b
#define CONVENTION 0x36, 0x0b
#define FRAME_BASE_REGISTER 0x02, 0x18 /* DW_AT_location, exprloc */

#define UNIT 1
#define SUBPROGRAM 2
#define SUBPROGRAM_WITH_RESULT 3
#define PARAMETER 4
#define STRUCT 5
#define MEMBER 6
#define BASE 7
#define NAMESPACE 8

  .section .debug_abbrev, "", @progbits
.Labbreviations:
  .byte UNIT, 0x11, CHILDREN, NAME, 0, 0
  .byte SUBPROGRAM, 0x2e, CHILDREN, NAME, LOW_PC, HIGH_PC, 0, 0
  .byte SUBPROGRAM_WITH_RESULT, 0x2e, CHILDREN, NAME, LOW_PC, HIGH_PC, TYPE, 0, 0
  .byte PARAMETER, 0x05, NO_CHILDREN, NAME, TYPE, FRAME_BASE_REGISTER, 0, 0
  .byte STRUCT, 0x13, CHILDREN, BYTE_SIZE, CONVENTION, 0, 0
  .byte MEMBER, 0x0d, NO_CHILDREN, TYPE, LOCATION, 0, 0
  .byte BASE, 0x24, NO_CHILDREN, NAME, BYTE_SIZE, ENCODING, 0, 0
  .byte NAMESPACE, 0x39, CHILDREN, NAME, SIBLING, 0, 0
  .byte 0

  .section .debug_info, "", @progbits
.Linfo:
  .long .Lend - .Lversion
.Lversion:
  .value 4
  .long .Labbreviations
  .byte 8
  .byte UNIT
  .string "hostile"

/* A parameter whose location is register rdi. */
.macro parameter type
  .byte PARAMETER
  .string "parameter"
  .long \type - .Linfo
  .byte 1, 0x55
.endm

.macro function name
  .byte SUBPROGRAM
  .string "\name"
  .quad \name
  .long 1
.endm

/* A struct that has the next one twice at its start, and so on; at last an int. */
.macro chain depth, convention
  .rept \depth
  .byte STRUCT, 4, \convention
  .byte MEMBER
  .long 1f - .Linfo
  .byte 0
  .byte MEMBER
  .long 1f - .Linfo
  .byte 0
  .byte 0
1:
  .endr
  .byte BASE
  .string "int"
  .byte 4, 5
.endm

  function hostile_copies
  parameter .Lcopies
  .byte 0
  function hostile_contents
  parameter .Lcontents
  .byte 0
  .byte SUBPROGRAM_WITH_RESULT
  .string "hostile_result"
  .quad hostile_result
  .long 1
  .long .Lcopies - .Linfo
  .byte 0
.Lcopies:
  chain DEPTH, 0
.Lcontents:
  /* DW_CC_pass_by_value, so that copies are not asked for; all within the limit of
   * nesting, beyond which a type would be refused at once. */
  chain 30, 5
.Lint:
  .byte BASE
  .string "int"
  .byte 4, 5

/* The first child of each is the next. */
  .rept DEPTH
  .byte NAMESPACE
  .string "n"
  .long 1f - .Linfo
1:
  .endr
  function harmless
  parameter .Lint
  .byte 0
  .rept DEPTH + 1
  .byte 0
  .endr
.Lend:
  .section .note.GNU-stack, "", @progbits
