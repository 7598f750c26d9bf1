"""What usually causes a compiler's message, and what to do: messages of nvcc, g++, the linker, pybind and simt."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Explanation:
    """name: of the entry in KNOWN. text: one to three sentences: the usual cause, then what to do."""

    name: str
    text: str


@dataclasses.dataclass(frozen=True)
class Known:
    """One message. said: a pattern of it; its named groups stand in `text` as {name}.

    at: a pattern that the student's line must have too. when: a further condition on the place.
    """

    name: str
    said: str
    text: str
    at: str = ""
    when: Callable[[Place], dict | None] | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a message points: the match of `said`, the line's text, the string that was compiled, the line in it from 1."""

    match: re.Match
    line: str
    source: str
    number: int | None


def explain(message: str, line: str = "", source: str = "", number: int | None = None) -> Explanation | None:
    """The first entry of KNOWN that fits, or None.

    line: the text of the student's line that the message points to; source: the string that was compiled, and number the
    line's number in it, from 1, where they are known: some causes show only there.
    """
    for known in KNOWN:
        match = re.search(known.said, message)
        if not match or (known.at and not re.search(known.at, line)):
            continue
        more = known.when(Place(match, line, source, number)) if known.when else {}
        if more is not None:
            values = match.groupdict() | more
            return Explanation(known.name, re.sub(r"\{(\w+)\}", lambda hole: values.get(hole[1]) or "", known.text))
    return None


WHILE_RUNNING = {"incompatible_arguments", "shared_too_large"}  # entries that also say what an exception or a failed launch means
CONSEQUENCE = re.compile(r"variable or field ‘\w+’ declared void|incomplete type \"void\" is not allowed")


def first(notes: list):
    """The note to begin with: the first one, or the one on its line that it only follows from. Notes have message and line."""
    causes = [note for note in notes if note.line == notes[0].line and not CONSEQUENCE.match(note.message)]
    return causes[0] if causes and CONSEQUENCE.match(notes[0].message) else notes[0]


# --- conditions ------------------------------------------------------------------------------------------------------


def _defined_below(place: Place) -> dict | None:
    """Whether the unknown name is a function or a constant that stands further down in the same string."""
    name = re.escape(place.match["name"])
    below = place.source.split("\n")[place.number or 0 :] if place.number else []
    defined = re.compile(rf"^[^/\n]*\b(?:void|int|float|double|bool|auto|constexpr|T|\w+_t|#define)\b[^=;(]*\b{name}\b\s*[(=]|^\s*#define\s+{name}\b")
    return {} if any(defined.search(text) for text in below) else None


def _other_parameters(place: Place) -> dict | None:
    """Whether the source defines a function of the name that the linker misses, with other parameters."""
    name = re.escape(place.match["name"].split("::")[-1])
    match = re.search(rf"^[^\n/;]*\b{name}\s*\(([^;{{]*?)\)\s*\{{", place.source, re.MULTILINE)
    if not match or 'extern "C"' in match[0]:
        return None
    return {"have": f"{place.match['name']}({' '.join(match[1].split())})"}


def _extern_c(place: Place) -> dict | None:
    return {} if 'extern "C"' in place.source else None


def _where(place: Place) -> dict | None:
    """Where the semicolon is most often missing: at the end of the line above, but for empty ones, or of this one if that one is complete."""
    before = [line.strip() for line in place.source.split("\n")[: (place.number or 1) - 1] if line.strip()]
    if before and re.search(r"[;{}]\s*(?://.*)?$", before[-1]):
        return {"where": " in this line, most often at its end"}
    return {"where": ", most often at the end of the line above" + (f", `{before[-1][:80]}`" if before else "")}


def _python_division(place: Place) -> dict | None:
    """Whether `//` divides in the line, or in the one above it that has text: code without an end before it, the rest of it behind it."""
    above = [line for line in place.source.split("\n")[: (place.number or 1) - 1] if line.strip()]
    for line in [place.line, *above[-1:]]:
        before, _, behind = line.partition("//")
        ends = {len(behind), *(match.start() for match in re.finditer("//", behind))}  # a comment that is one may follow
        if re.search(r"[\w)\]]\s*$", before) and any(_goes_on(before, behind[:end].strip()) for end in ends):
            return {"line": line.strip()[:80]}
    return None


def _goes_on(before: str, behind: str) -> bool:
    """Whether what stands behind a `//` is no words but the rest of what stands before it, to an end that code has."""
    code = re.match(r"=?\s*[\w(]", behind) and re.search(r"[;,)\]{]$", behind) and not re.search(r"[A-Za-z]\w*\s+[A-Za-z]", behind)
    return bool(code) and all((before + behind).count(opened) == (before + behind).count(closed) for opened, closed in ("()", "[]"))


C_FUNCTIONS = {"gamma", "y0", "y1", "yn", "j0", "j1", "jn", "index", "time", "remove", "signal", "round", "exp", "log", "pow", "abs", "div", "floor", "erf"}


def _c_function(place: Place) -> dict | None:
    """The name in the line that C itself uses for a function, where it is not called."""
    named = [name for name in re.findall(r"\b([a-z]\w*)\b(?!\s*\()", place.line) if name in C_FUNCTIONS]
    return {"name": named[0]} if named else None


def _fewer(place: Place) -> dict | None:
    return {} if _count(place.match["gives"]) < _count(place.match["wants"]) else None


def _more(place: Place) -> dict | None:
    return {} if _count(place.match["gives"]) > _count(place.match["wants"]) else None


def _count(types: str) -> int:
    """Types in a list, commas inside <> and () not counted."""
    depth, found = 0, 1 if types.strip() else 0
    for character in types:
        depth += (character in "<(") - (character in ">)")
        found += character == "," and depth == 0
    return found


# --- the table -------------------------------------------------------------------------------------------------------

def _unknown(name: str = r"[\w:]+") -> str:
    """g++'s and nvcc's words for a name that they do not know."""
    return rf"(?:‘(?=(?:{name})’)|identifier \"(?=(?:{name})\"))(?P<name>[\w:]+)(?:’ was not declared|’ does not name a type|’ has not been declared|\" is undefined)"


BUILTINS = r"(?i:threadidx|blockidx|blockdim|griddim|warpsize|_+syncthreads|_*syncwarp|_*syncthread)"
SHUFFLES = r"__(?:shfl|shfl_up|shfl_down|shfl_xor|any|all|ballot)"

LAUNCH = r"The kernel's parameters are \((?P<wants>.*)\), but this launch gives \((?P<gives>.*)\)"

# The first entry that fits counts: what is special stands before what is general.
KNOWN: list[Known] = [
    # load_inline's arguments
    Known(
        "missing_cpp_sources", r"cpp_sources is empty",
        "load_inline writes the bridge to Python below cpp_sources, so the function's first line must stand there, without its body, "
        "with a semicolon.",
    ),
    Known(
        "undeclared_function", r"functions= names .*which cpp_sources does not declare",
        "Look for a difference in spelling between functions=[…] and the declaration in cpp_sources: upper and lower case count.",
    ),
    Known(
        "two_modules", r"PYBIND11_MODULE|multiple definition of [`‘']?PyInit_|redefinition of .*PyInit_",
        "With functions=[…] load_inline writes the module itself: delete your PYBIND11_MODULE, or leave functions= out and keep yours.",
    ),
    Known(
        "extern_c", r"(?:declared and called, but no source defines it|undefined (?:symbol|reference))",
        'A source has extern "C": that gives the function another name for the linker than cpp_sources declares. Delete extern "C"; it cannot '
        "be used with a torch::Tensor anyway.",
        when=_extern_c,
    ),
    Known(
        "extern_c", r"conflicting declaration .* with ‘C’ linkage|linkage specification is incompatible|has C-linkage specified",
        'extern "C" gives a function another name for the linker than its declaration in cpp_sources has. Delete extern "C".',
    ),
    Known(
        "other_parameters", r"`(?P<name>[\w:]+)\(.*declared and called, but no source defines it",
        "The source does have {have}: its parameters are other ones. Copy the definition's first line into cpp_sources, letter by letter, with a "
        "semicolon behind it.",
        when=_other_parameters,
    ),
    Known(
        "never_defined", r"declared and called, but no source defines it|undefined symbol|undefined reference",
        "A declaration only promises a function: its body must stand in cuda_sources or cpp_sources, under the same name and with the same "
        "parameter types.",
    ),
    Known(
        "cuda_in_cpp_sources", r"‘__(?:global|device|shared|host|constant|forceinline)__’ (?:does not name a type|was not declared|has not been declared)",
        "This is CUDA code in cpp_sources, which an ordinary C++ compiler reads. Move kernels and what launches them to cuda_sources, and leave only "
        "declarations in cpp_sources.",
    ),
    Known(
        "incompatible_arguments", r"incompatible function arguments|takes \d+ arguments?, but (?:got )?\d+",
        "Python called the function with other arguments than it declares: count them, and compare their types (a float where the C++ has "
        "int64_t, a list where it has a torch::Tensor).",
    ),
    Known("overloaded", r"can't be bound: several functions have this name",
          "Python cannot choose between functions of one name: give the one that Python calls a name of its own."),
    Known("result_type", r"can't be bound: its result",
          "What a function hands to Python is a torch::Tensor, a number, a bool, a string, or a std::vector or tuple of these."),
    # syntax
    Known("broken_string", r"missing (?:terminating|closing) (?:\" character|quote)",
          'A string in the CUDA code ends at the end of the line. In a Python string "\\n" is a line break already before the compiler sees it: put '
          'r in front of the Python string (r"""…"""), or write "\\\\n".'),
    Known("open_comment", r"unterminated comment|comment unclosed at end of file",
          "A comment that begins with /* has no */: everything behind it is comment. Close it, or use //."),
    Known("stray_character", r"extended character|stray ‘|unrecognized token|identifier \"[^\x00-\x7f]",
          "Here stands a character that C++ does not know, such as a long dash or a curly quotation mark, which word processors and web pages make. "
          "Type it anew on the keyboard."),
    Known("function_inside_function", r"function-definition is not allowed here|expected a \";\"",
          "The compiler believes that this function begins inside another one: a } is missing further up. Check that each { of the "
          "function above is closed.",
          at=r"^\s*(?:static |__\w+__ |torch::)*[\w:<>*&]+\s+\w+\s*\([^;]*\)\s*\{?\s*$"),
    Known("missing_brace", r"This ‘\{’ is never closed|expected ‘\}’ at end of input|expected a \"\}\"|reached end of (?:file|source)",
          "For each { there must be one }: follow the indentation from here on and see which } is missing."),
    Known("else_without_if", r"‘else’ without a previous ‘if’",
          "An if without { } covers one statement only: put { } around the lines that belong to it."),
    Known("else_without_if", r"expected a statement", "An if without { } covers one statement only: put { } around the lines that belong to it.",
          at=r"^\s*\}?\s*else\b"),
    Known("launch_brackets", r"binary ‘operator(?:<<|>>)’|A launch is kernel<<<|expected an expression|expression must have integral or unscoped enum type",
          "A launch has three angle brackets on each side: kernel<<<blocks, threads>>>(arguments).", at=r"<<"),
    Known("launch_settings", r"A launch has two to four arguments",
          "Between <<< and >>> stand the number of blocks and the number of threads a block; then, if wanted, bytes of shared memory and a stream."),
    Known("python_division", r"expected (?:initializer|‘,’ or ‘;’|‘[;)\]]’|primary-expression) before|expected a \"[;)\]]\"|After this line something is missing",
          "`//` begins a comment in C++; its whole-number division is `/`. See `{line}`.", when=_python_division),
    Known("missing_semicolon", r"expected (?:initializer|‘,’ or ‘;’|‘;’) before|expected a \";\"|After this line something is missing",
          "A semicolon is missing{where}.", when=_where),
    Known("missing_bracket", r"expected ‘[)\]]’ before|expected a \"[)\]]\"|expected primary-expression before ‘[)\]]’",
          "The brackets of this line do not pair up: count ( and ), [ and ]."),
    Known("assignment_for_comparison", r"lvalue required as left operand|expression must be a modifiable lvalue",
          "= stores a value, == compares two: what stands left of this = cannot be stored to. Write == if you mean to compare.", at=r"(?:\bif\b|\bwhile\b|&&|\|\|).*[^=!<>]=[^=]"),
    # names
    Known("no_such_header", r"(?P<name>[\w./]+): No such file or directory|cannot open source file \"(?P<n2>[^\"]+)\"|could not open source file",
          "The header is not on this machine: check its spelling. A header of your own must be put into the string; those of torch, "
          "CUDA and C++ itself "
          "are found."),
    Known("misspelt_builtin", _unknown(BUILTINS),
          "Capital letters count in C++: the names are threadIdx, blockIdx, blockDim, gridDim, warpSize, __syncthreads() and __syncwarp()."),
    Known("old_shuffle", _unknown(SHUFFLES),
          "`{name}` was taken out of CUDA: write {name}_sync with a mask of the lanes that take part as the first argument, 0xffffffff for all 32."),
    Known("scalar_t_outside", _unknown("scalar_t"),
          "scalar_t exists only inside AT_DISPATCH_…(…, [&] { … }). Make the kernel a template (template <typename scalar_t> above it) and launch "
          "kernel<scalar_t><<<…>>> inside, or write float."),
    Known("torch_unknown", _unknown("torch|at|c10") + r"|name followed by \"::\" must be a class or namespace name",
          "Nothing has told the compiler about torch: put #include <torch/extension.h> at the top of this source (load_inline does it unless "
          "no_implicit_headers=True)."),
    Known("torch_unknown", r"this declaration has no storage class or type specifier",
          "Nothing has told the compiler about torch: put #include <torch/extension.h> at the top of this source.", at=r"\b(?:torch|at|c10)::"),
    Known("missing_include", r"(?:in namespace ‘std’ does not name a|is not a member of ‘std’|namespace \"std\" has no member)",
          "A header of the standard library is missing, or the name is misspelt: std::max needs #include <algorithm>, std::sqrt "
          "<cmath>, std::vector <vector>."),
    Known("defined_below", _unknown(),
          "`{name}` is defined further down: C++ reads from top to bottom. Move its definition above this function, or put its declaration there.",
          when=_defined_below),
    Known("unknown_type", _unknown(r"[\w:]+"),
          "The compiler knows no type `{name}`: check the spelling. Types here are float, double, int, unsigned, int64_t, bool, half "
          "and torch::Tensor.",
          at=r"^\s*(?:template\s*<.*>\s*)?(?:__\w+__|static|inline|extern|void)\b[^=;]*\("),
    Known("undefined_name", _unknown(),
          "`{name}` is not known here: look for a misspelling, for a parameter that the kernel is not given, and for a variable that "
          "was declared inside "
          "other { } or a loop that has ended."),
    Known("no_such_member", r"has no member",
          "A tensor in C++ has x.size(0), x.numel(), x.dim(), x.sizes(), x.data_ptr<float>(): there is no x.shape and no x.T.", at=r"\.shape|\.T\b|\.numel|\.size|\.item"),
    Known("no_such_member", r"has no member", "The type has nothing of this name: check the spelling, and whether it is a variable or needs ()."),
    Known("defined_twice", r"^redefinition of|has already been defined|multiple definition of",
          "The same function is defined twice, body and all: often it stands both in cpp_sources and in cuda_sources. Keep one, and "
          "only its first line "
          "with a semicolon in cpp_sources."),
    Known("other_return_type", r"ambiguating new declaration|cannot overload functions distinguished by return type alone|conflicting declaration of ‘\w+ \w+\(",
          "The function is declared with one result type and defined with another: make the declaration in cpp_sources and the definition the same."),
    Known("shared_type_clash", r"conflicting declaration ‘extern|declaration is incompatible with previous|conflicting declaration ‘[\w ]+ \w+ ?\[\]",
          "Every extern __shared__ array of a source is the same memory, so one name can have one type only. Give the arrays different names, or "
          "declare one as extern __shared__ char bytes[] and cast it in each kernel.", at=r"\[\s*\]|__shared__"),
    Known("shadows_parameter", r"declaration of ‘(?:[\w:]+[ *&]+)*(?P<name>\w+)(?:\[.*\])?’ shadows a parameter",
          "The function's first line already has a parameter `{name}`. Give your own variable another name; or leave the type out ({name} = …) if you mean "
          "the parameter."),
    Known("declared_twice", r"redeclaration of|conflicting declaration|has already been declared in the current scope",
          "The name is taken: this scope has declared it before. Leave the type out to assign to it (i = …;), or take another name."),
    # types
    Known("type_in_dispatch", r"DeprecatedTypeProperties",
          "AT_DISPATCH_… wants the element type: write x.scalar_type() where x.type() stands."),
    Known("too_few_arguments", LAUNCH, "The launch gives too few arguments: compare them with the kernel's first line, one by one.", when=_fewer),
    Known("too_many_arguments", LAUNCH, "The launch gives more arguments than the kernel has: compare them with the kernel's first line, one by one.", when=_more),
    Known("too_few_arguments", r"too few arguments", "The call gives too few arguments: compare them with the function's first line, one by one."),
    Known("too_many_arguments", r"too many arguments", "The call gives more arguments than the function has: compare them with its first line, one by one."),
    Known("const_lost", r"this launch gives \([^)]*\bconst \w|invalid conversion from ‘const \w+\*’|argument of type \"const [^\"]+\*\" is incompatible with",
          "A pointer to const data is given where the code may write. If the function only reads, declare its parameter const float*; "
          "if it writes, give it "
          "a pointer to the output."),
    Known("data_ptr_without_type", r"this launch gives \([^)]*void\*|invalid conversion from ‘void\*’|argument of type \"(?:const )?void \*\"",
          "data_ptr() without a type gives void*: write x.data_ptr<float>()."),
    Known("tensor_for_pointer", r"this launch gives \([^)]*at::Tensor|cannot convert ‘(?:const )?at::Tensor’|no suitable conversion function from \"(?:const )?at::Tensor\"",
          "A kernel takes the address of a tensor's data, not the tensor: pass x.data_ptr<float>()."),
    Known("other_pointer", LAUNCH + r"|cannot convert ‘[\w ]+\*’ to ‘[\w ]+\*’|argument of type \"[\w ]+\*\" is incompatible with parameter of type \"[\w ]+\*\"",
          "The types differ: data_ptr<T>() must name the type that the kernel's parameter has, and that the tensor holds (a float32 "
          "tensor: data_ptr<float>())."),
    Known("template_argument", r"No kernel `|couldn’t deduce template|no instance of function template \"\w+\" matches",
          "The compiler cannot tell the template's type from the arguments: name it, as kernel<float><<<blocks, threads>>>(…).", at=r"<<<"),
    Known("atomic_type", r"atomic(?:Add|Max|Min|Exch|CAS)|‘int64_t\*’.*to ‘(?:long )+long unsigned int\*’",
          "There is no such atomic function for this type: atomicAdd takes int, unsigned, unsigned long long, float, double and half. "
          "Of int64_t, cast the address: "
          "atomicAdd((unsigned long long*)p, 1ull).", at=r"atomic"),
    Known("mixed_max", r"no matching function for call to ‘(?:max|min|clamp)\(|no instance of (?:overloaded function|function template) \"std::(?:max|min|clamp)",
          "std::max and std::min take two values of the same type, and here they differ: name it, as std::max<int64_t>(a, b)."),
    Known("thread_as_number", r"‘(?:const )?(?:uint3|dim3)’|\"(?:const )?(?:uint3|dim3)\"|no operator \"[^\"]+\" matches",
          "threadIdx, blockIdx, blockDim and gridDim have three numbers each: write threadIdx.x, .y or .z.", at=r"(?:Idx|Dim)\b(?!\s*\.)"),
    Known("member_of_pointer", r"request for member ‘\w+’ in ‘(?P<name>[^’]+)’, which is of (?:non-class|pointer) type ‘[^’]*\*|expression must have class type but it has type \"[^\"]*\*",
          "A kernel is given the bare address of a tensor's numbers, not the tensor: there are no methods and no sizes behind the dot. Read x[i]; sizes come as "
          "parameters of their own, and a sum or a maximum is a loop."),
    Known("c_function", r"invalid operands of types .*\([\w ,*]*\)|pointer to a function used in arithmetic",
          "`{name}` is no variable here, but a function of C itself. If you mean a parameter, it has another name in the kernel's first line.", when=_c_function),
    Known("half_operators", r"(?:more than one|no) operator \"[^\"]+\" matches.*|more than one (?:conversion|operator)",
          "torch's builds turn the arithmetic of half off: convert with __half2float, compute in float, convert back with __float2half, or use "
          "__hadd and its kin."),
    Known("remainder_of_floats", r"binary ‘operator(?:%|<<|&|\|)’|expression must have integral",
          "This operator is for integers only. For the remainder of floats use fmodf(a, b)."),
    Known("index_of_value", r"for array subscript|expression must have pointer-to-object type|subscripted value",
          "What stands before [ ] is a single value, not an array or a pointer: declare the parameter as const float* x, or leave the [ ] out."),
    Known("pointer_for_value", r"cannot convert ‘[^’]*\*’ to ‘(?:const )?(?:float|double|int|int64_t|unsigned int|bool|long int)’|\"[^\"]*\*\" cannot be used to initialize|"
          r"\"[^\"]*\*\" cannot be assigned to an entity of type \"(?:float|double|int)\"|argument of type \"[^\"]*\*\" is incompatible with parameter of type \"(?:float|double|int)\"",
          "A pointer is the address of many values: say which one, as x[i]."),
    Known("void_value", r"void value not ignored|value of type \"void\"",
          "The function returns nothing (void), so there is no value to use: give it a result type and a return, or call it on a line of its own."),
    Known("return_without_value", r"return-statement with no value|should return a value|missing return statement|no return statement|return type is not void",
          "The function promises a result: each way out of it needs return with a value."),
    Known("value_from_void", r"return-statement with a value, in function returning ‘void’|return value type does not match the function type",
          "What is returned is not what the function's first line promises. A kernel, and any void function, returns nothing: store the "
          "result through a pointer."),
    # kernels
    Known("write_to_const", r"assignment of read-only|expression must be a modifiable lvalue|increment of read-only",
          "The parameter is declared const, so the kernel may only read it. Write to the output, or take const away where it is the output."),
    Known("kernel_called", r"a __global__ function call must be configured|__global__ function .* without",
          "A kernel is not called, it is launched: kernel<<<blocks, threads>>>(arguments)."),
    Known("device_from_host", r"calling a __device__ function.*from a __host__",
          "A __device__ function exists on the GPU only. Put __host__ __device__ before it if the CPU shall call it too."),
    Known("host_from_device", r"calling a (?:constexpr )?__host__ function.*from a __(?:global|device)",
          "A kernel can call only what is compiled for the GPU: put __device__ before the function."),
    Known("host_from_device", r"identifier \".*\" is undefined in device code", "A kernel can use only what is compiled for the GPU: put __device__ before it."),
    Known("kernel_returns", r"__global__ function must have a void return type|must have a void return",
          "A kernel returns nothing: make it void and store the result through a pointer."),
    Known("shared_size_unknown", r"storage size of .* isn’t constant|expression must have a constant value|variable-length array|variable length array",
          "The size of a __shared__ array must be known when the kernel is compiled. Use a constexpr number, or extern __shared__ float "
          "s[]; and give "
          "the bytes at the launch: kernel<<<blocks, threads, n * sizeof(float)>>>(…)."),
    Known("shared_initialised", r"__shared__ variable can't have an initial value|initializer not allowed for (?:a )?__shared__|dynamic initialization is not supported for a",
          "Shared memory begins undefined: write if (threadIdx.x == 0) sum = 0; and then __syncthreads()."),
    Known("shared_too_large", r"uses too much shared data|__shared__ arrays take [\d,]+ bytes; the limit",
          "A block has 48 KiB for its __shared__ arrays, 12,288 floats. Make the tile smaller, or keep part of it in registers."),
]
