#include "textflag.h"

// func find2(in []byte, a, b byte) (at int, as, bs uint64)
//
// SSE2, which every amd64 has.
TEXT ·find2(SB), NOSPLIT, $0-56
	MOVQ in_base+0(FP), SI
	MOVQ in_len+8(FP), DI
	MOVBLZX a+24(FP), AX
	MOVBLZX b+25(FP), BX
	MOVQ SI, R8
	LEAQ -64(SI)(DI*1), DI // the last block begins here or before

	// a and b in each byte of X0 and X1
	MOVQ AX, X0
	MOVQ BX, X1
	PUNPCKLBW X0, X0
	PUNPCKLBW X1, X1
	PSHUFLW $0, X0, X0
	PSHUFLW $0, X1, X1
	PUNPCKLQDQ X0, X0
	PUNPCKLQDQ X1, X1

next:
	MOVOU 0(SI), X2
	MOVOU 16(SI), X3
	MOVOU 32(SI), X4
	MOVOU 48(SI), X5
	MOVO X2, X6
	MOVO X3, X7
	MOVO X4, X8
	MOVO X5, X9
	PCMPEQB X0, X2
	PCMPEQB X0, X3
	PCMPEQB X0, X4
	PCMPEQB X0, X5
	PCMPEQB X1, X6
	PCMPEQB X1, X7
	PCMPEQB X1, X8
	PCMPEQB X1, X9

	// The last block: the test below would often be guessed wrong.
	LEAQ 64(SI), AX
	CMPQ AX, DI
	JHI found

	MOVO X2, X10
	MOVO X4, X11
	POR X3, X10
	POR X5, X11
	POR X6, X10
	POR X7, X11
	POR X8, X10
	POR X9, X11
	POR X11, X10
	PMOVMSKB X10, BX
	TESTL BX, BX
	JNZ found
	MOVQ AX, SI
	JMP next

found:
	SUBQ R8, SI
	MOVQ SI, at+32(FP)

	PMOVMSKB X2, AX
	PMOVMSKB X3, BX
	PMOVMSKB X4, CX
	PMOVMSKB X5, DX
	SHLQ $16, BX
	SHLQ $32, CX
	SHLQ $48, DX
	ORQ BX, AX
	ORQ DX, CX
	ORQ CX, AX
	MOVQ AX, as+40(FP)

	PMOVMSKB X6, AX
	PMOVMSKB X7, BX
	PMOVMSKB X8, CX
	PMOVMSKB X9, DX
	SHLQ $16, BX
	SHLQ $32, CX
	SHLQ $48, DX
	ORQ BX, AX
	ORQ DX, CX
	ORQ CX, AX
	MOVQ AX, bs+48(FP)
	RET
