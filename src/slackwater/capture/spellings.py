"""How Spark's expressions are written in SQL where the name of their class does not tell.

Spark's optimizer replaces many functions by what they do: `url_encode(x)` becomes a call of a Java method,
`to_date(x, f)` a cast of a parsed timestamp. Here they are written back as a function that Spark turns into the same
expression again. What is not in these tables has no spelling, and a query with it is recomputed: nothing is guessed.

Whether an expression fails or gives NULL is part of what it means, so the function is chosen by what the expression
says of itself, not by the session's settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from slackwater.algebra.expressions import Expr, call, field_text, lit, string_text
from slackwater.capture.trees import Tree, Unsupported, type_name

OPTIONS, OBJECT = "sw options", "sw object"
"""Where is noted what Spark's JSON does not say: the options of a format, and what an object of Spark's code holds."""

FORMATS = {"JsonToStructs": "from_json", "CsvToStructs": "from_csv", "XmlToStructs": "from_xml",
           "StructsToCsv": "to_csv", "StructsToXml": "to_xml"}  # fmt: skip
"""Classes that have options, and the functions that make them."""

TOLD = frozenset({
    "try_to_date", "try_to_timestamp", "try_make_timestamp", "try_make_timestamp_ltz", "try_make_timestamp_ntz",
    "try_make_interval", "try_variant_get", "try_url_decode", "try_parse_json", "try_parse_url", "try_to_number",
    "try_validate_utf8", "try_to_binary",
})  # fmt: skip
"""Lenient functions of which the JSON, or a note beside it, tells that they are lenient."""

_NAMES = {
    "Floor": "floor", "Ceil": "ceil", "RoundFloor": "floor", "RoundCeil": "ceil", "StringLPad": "lpad",
    "StringRPad": "rpad", "ToCharacter": "to_char", "TryToNumber": "try_to_number", "Mask": "mask",
    "TimeBucket": "time_bucket", "Sequence": "sequence", "ArrayJoin": "array_join",
    "Levenshtein": "levenshtein",
}  # fmt: skip
"""Classes whose children are the arguments of a function, an optional last one included."""

_STATIC = {
    "Base64.encode": ("base64", 1), "Encode.encode": ("encode", 2), "StringDecode.decode": ("decode", 2),
    "UrlCodec.encode": ("url_encode", 1), "JsonExpressionUtils.lengthOfJsonArray": ("json_array_length", 1),
    "JsonExpressionUtils.jsonObjectKeys": ("json_object_keys", 1), "ExpressionImplUtils.quote": ("quote", 1),
    "ExpressionImplUtils.getSentences": ("sentences", 3), "ExpressionImplUtils.isLuhnNumber": ("luhn_check", 1),
    "ExpressionImplUtils.validateUTF8String": ("validate_utf8", 1),
    "ExpressionImplUtils.tryValidateUTF8String": ("try_validate_utf8", 1),
    "VariantExpressionEvalUtils.isVariantNull": ("is_variant_null", 1),
    "SchemaOfVariant.schemaOfVariant": ("schema_of_variant", 1),
    "ByteArrayMethods.contains": ("contains", 2), "ByteArrayMethods.startsWith": ("startswith", 2),
    "ByteArrayMethods.endsWith": ("endswith", 2), "ByteArray.lpad": ("lpad", 3), "ByteArray.rpad": ("rpad", 3),
    "BitmapExpressionUtils.bitmapBitPosition": ("bitmap_bit_position", 1),
    "BitmapExpressionUtils.bitmapBucketNumber": ("bitmap_bucket_number", 1),
    "BitmapExpressionUtils.bitmapCount": ("bitmap_count", 1),
}  # fmt: skip
"""Java methods, the functions that call them, and how many arguments are the function's own."""

_VECTORS = {f"vector_{name}" for name in ("norm", "normalize", "inner_product", "l2_distance", "cosine_similarity")}
_METHODS = {"isValid": "is_valid_utf8", "makeValid": "make_valid_utf8"}
_TRIMMED = {"StringTrim": "BOTH", "StringTrimLeft": "LEADING", "StringTrimRight": "TRAILING"}
_XPATH = {"List": "xpath", "Boolean": "xpath_boolean", "Double": "xpath_double", "Float": "xpath_float",
          "Int": "xpath_int", "Long": "xpath_long", "Short": "xpath_short", "String": "xpath_string"}  # fmt: skip
_TRIED = {"DateAdd": "try_add", "DateSub": "try_subtract", "+": "try_add", "-": "try_subtract", "*": "try_multiply",
          "/": "try_divide"}  # fmt: skip
_HOLDERS = ("Invoke", "ElementAt")
"""Classes that may read an expression without a text of its own."""
_UNIT = re.compile(r"[A-Z]+")


def spelled(tree: Tree, args: tuple[Expr, ...]) -> Expr | None:
    """The expression as SQL; None for a class that is not known here."""
    if any(not arg.text for arg in args) and tree.name not in _HOLDERS:
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "it reads what only Spark's code can hold")
    if tree.name in _NAMES:
        return call(_NAMES[tree.name], *args)
    if tree.name in _TRIMMED and len(args) == 2:
        return Expr(tree.name, args, f"trim({_TRIMMED[tree.name]} {args[1].text} FROM {args[0].text})")
    writer = _WRITERS.get(tree.name)
    return None if writer is None else writer(tree, args)


def _timestamp(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """A string that is read as a timestamp by a format."""
    dtype, strict = type_name(tree.props["dataType"]), bool(tree.props["failOnError"])
    if dtype == "timestamp":
        return call("to_timestamp_ltz" if strict else "try_to_timestamp", *args)
    if dtype == "timestamp_ntz" and strict:
        return call("to_timestamp_ntz", *args)
    raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, f"reading a {dtype} leniently by a format")


def _made_timestamp(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    suffix = "ntz" if type_name(tree.props["dataType"]) == "timestamp_ntz" else "ltz"
    return call(f"{'' if tree.props['failOnError'] else 'try_'}make_timestamp_{suffix}", *args)


def _made_interval(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    return call("make_interval" if tree.props["failOnError"] else "try_make_interval", *args)


def _variant(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    function = "variant_get" if tree.props["failOnError"] else "try_variant_get"
    return call(function, *args, _text(type_name(tree.props["targetType"])))


def _bytes(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """`unhex` gives NULL for what is none, `to_binary` fails; both are one class."""
    lenient, form = ("unhex", "hex") if tree.name == "Unhex" else ("unbase64", "base64")
    return call("to_binary", *args, _text(form)) if tree.props["failOnError"] else call(lenient, *args)


def _element(tree: Tree, args: tuple[Expr, ...]) -> Expr | None:
    """`split_part` is an element of a list of parts, or an empty string where there is no such element."""
    if not tree.props.get("defaultValueOutOfBound"):
        if not args[0].text:
            raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "a part of a text that is split in a way of its own")
        return None
    if tree.children[0].name != "StringSplitSQL":
        raise Unsupported("EXPRESSION_UNSUPPORTED", "split_part", "of constants alone, in parts that Spark has made")
    return call("split_part", *args[0].args, args[1])


def _parts(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    return Expr("StringSplitSQL", args, "")  # has no text of its own, see `_HOLDERS`


def _unit(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    unit = str(tree.props["unit"]).upper()
    if not _UNIT.fullmatch(unit):
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "an unknown unit of time")
    function = "timestampdiff" if tree.name == "TimestampDiff" else "timestampadd"
    return Expr(function, args, f"{function}({unit}, {args[0].text}, {args[1].text})")


def _seconds(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    return Expr("extract second", args, f"extract(SECOND FROM {args[0].text})")


def _fields(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """One field of each struct in a list."""
    return Expr(tree.name, args, field_text(args[0], str(tree.props["field"]["name"])))


def _tried(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """NULL where the expression below fails."""
    below, (arg,) = tree.children[0].name, args
    function = _TRIED.get(below) or _TRIED.get(arg.op)
    if function is not None and len(arg.args) == 2:
        return call(function, *arg.args)
    if arg.op == "to_binary":
        return call("try_to_binary", *arg.args)
    if arg.op == "encode" and _is_text(arg.args[1], "UTF-8"):
        return call("try_to_binary", arg.args[0], _text("utf-8"))
    raise Unsupported("EXPRESSION_UNSUPPORTED", "TryEval", f"{arg.op or below} has no lenient spelling")


def _raised(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """`raise_error` and `assert_true`: an error of the user's own, its text in a map."""
    if args[0].value != "USER_RAISED_EXCEPTION":
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "an error of Spark's own")
    return call("raise_error", call("element_at", args[1], _text("errorMessage")))


def _static(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    owner = str(tree.props["staticObject"]).rsplit(".", 1)[-1].rstrip("$")
    method = f"{owner}.{tree.props['functionName']}"
    if method in _STATIC:
        function, count = _STATIC[method]
        return call(function, *args[:count])
    if method == "UrlCodec.decode":
        return call("try_url_decode" if args[-1].value is False else "url_decode", args[0])
    if method == "VariantExpressionEvalUtils.parseJson" and isinstance(args[2].value, bool):
        return call("parse_json" if args[2].value else "try_parse_json", args[0])
    if owner == "VectorFunctionImplUtils" and args[-1].value in _VECTORS:
        return call(str(args[-1].value), *args[:-1])
    raise Unsupported("EXPRESSION_UNSUPPORTED", method, "no SQL function is known to call this method")


def _invoked(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    """A method of an object, which is a value or a constant that only Spark's code can hold."""
    method, held = str(tree.props["functionName"]), tree.children[0].props.get(OBJECT)
    if method in _METHODS and len(args) == 1 and args[0].text:
        return call(_METHODS[method], *args)
    if method != "evaluate" or not isinstance(held, Mapping):
        raise Unsupported("EXPRESSION_UNSUPPORTED", f"Invoke {method}", "no SQL function is known to call this method")
    kind = str(held["class"])
    if kind == "StructsToJsonEvaluator":
        return call("to_json", *args[1:], *_options(held[OPTIONS]))
    if kind == "ParseUrlEvaluator":
        return call("parse_url" if held["failOnError"] else "try_parse_url", *args[1:])
    xpath = re.fullmatch(r"XPath(\w+)Evaluator", kind)
    if xpath is not None and xpath[1] in _XPATH:
        return call(_XPATH[xpath[1]], *args[1:], _text(str(held["path"])))
    raise Unsupported("EXPRESSION_UNSUPPORTED", kind, "no SQL function is known to make this object")


def _format(tree: Tree, args: tuple[Expr, ...]) -> Expr:
    if OPTIONS not in tree.props or tree.props.get("variantAllowDuplicateKeys"):
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "its options cannot be found out")
    if tree.props.get("requiredSchema"):
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "only a part of what it reads is asked for")
    schema = (_text(type_name(tree.props["schema"])),) if "schema" in tree.props else ()
    return call(FORMATS[tree.name], *args, *schema, *_options(tree.props[OPTIONS]))


def _options(options: Mapping[str, str]) -> tuple[Expr, ...]:
    if not options:
        return ()
    return (call("map", *(_text(text) for pair in sorted(options.items()) for text in pair)),)


def _text(value: str) -> Expr:
    return lit(value, string_text(value), "string")


def _is_text(expr: Expr, text: str) -> bool:
    return isinstance(expr.value, str) and expr.value.upper() == text


_WRITERS: dict[str, Callable[[Tree, tuple[Expr, ...]], Expr | None]] = {
    "GetTimestamp": _timestamp,
    "MakeTimestamp": _made_timestamp,
    "MakeInterval": _made_interval,
    "VariantGet": _variant,
    "Unhex": _bytes,
    "UnBase64": _bytes,
    "ElementAt": _element,
    "StringSplitSQL": _parts,
    "TimestampDiff": _unit,
    "TimestampAdd": _unit,
    "SecondWithFraction": _seconds,
    "GetArrayStructFields": _fields,
    "RaiseError": _raised,
    "TryEval": _tried,
    "StaticInvoke": _static,
    "Invoke": _invoked,
    **dict.fromkeys(FORMATS, _format),
}
