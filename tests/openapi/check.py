"""Checks OpenAPI documents, and what was asked and answered against them.

The first line on standard input is the document. Each other line is an exchange by that document,
`{"method", "path", "request", "status", "answer"}`: the path is that of the request, or the template
that the document has, and of a stream each line is an exchange. Without any exchange it is the
document that is checked. The answer to each is one line on standard output, an array of problems in
words.

Where the document leaves room for keys that the host may add one day, an exchange may not: a key that
the document does not name is a problem.
"""

import copy
import json
import sys
from urllib.parse import urlsplit

from jsonschema.exceptions import best_match
from openapi_schema_validator import OAS31Validator, oas31_format_checker
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

HERE = "urn:document"
ABSENT = object()

# How the host refuses what is not in the document.
REFUSALS = {
    "400": "bad-request",
    "401": "unauthorized",
    "403": "forbidden",
    "404": "no-operation",
    "405": "method-not-allowed",
    "503": "unavailable",
}


class Document:
    """A document, and what it says of requests and answers."""

    def __init__(self, document):
        self.document = document
        closed = close(copy.deepcopy(document))
        self.registry = Registry().with_resource(
            HERE, Resource(contents=closed, specification=DRAFT202012)
        )

    def problems(self):
        # What is not even of the right type makes the validator stumble.
        try:
            for error in OpenAPIV31SpecValidator(self.document).iter_errors():
                yield f"{pointer(error.absolute_path)}: {error.message}"
        except Exception as error:
            yield f"the validator cannot go on: {error!r:.300}"

    def problems_of(self, exchange):
        method, status = exchange["method"].lower(), str(exchange["status"])
        template = self.template(exchange["path"], method)
        operation = self.document["paths"].get(template, {}).get(method)
        if operation is None:
            # What is not in the document can only be refused by the host.
            response = self.refusal(status)
            if response is None:
                yield "the document has no such path and method"
                return
        else:
            place = ["paths", template, method, "responses", status]
            response = self.resolve(place)
            if response is None:
                yield "the document has no such status there"
                return
            if "request" in exchange:
                place = ["paths", template, method, "requestBody"]
                yield from self.problems_of_request(place, exchange["request"])
        yield from self.problems_of_body(response, exchange.get("answer", ABSENT))

    def template(self, path, method):
        """The template that a path is of; one with less to fill in comes before others."""
        path = urlsplit(path).path
        if method in self.document["paths"].get(path, {}):
            return path
        parts = path.split("/")

        def fits(template):
            known = template.split("/")
            return len(known) == len(parts) and all(
                part == given or part.startswith("{") for part, given in zip(known, parts)
            )

        found = [it for it, item in self.document["paths"].items() if method in item and fits(it)]
        return min(found, key=lambda it: it.count("{"), default=path)

    def refusal(self, status):
        """The place of what the host says with that status where there is nothing else to say."""
        name = REFUSALS.get(status)
        return name and ["components", "responses", name]

    def resolve(self, place):
        """Where the thing at a place stands; none if there is nothing."""
        found = self.document
        for key in place:
            if key not in found:
                return None
            found = found[key]
        return found["$ref"][2:].split("/") if "$ref" in found else place

    def at(self, place):
        found = self.document
        for key in place:
            found = found[key]
        return found

    def problems_of_request(self, place, body):
        if self.resolve(place) is None:
            if body is not None:
                yield "the document has no body of a request there"
        elif body is not None:
            yield from self.problems_of_body(place, body, "request")
        elif self.at(place)["required"]:
            yield "the request has no body"

    def problems_of_body(self, place, body, what="answer"):
        content = self.at(place).get("content", {})
        if not content:
            if body is not ABSENT:
                yield f"the {what} has a body, and the document has none"
            return
        if body is ABSENT:
            yield f"the {what} has no body"
            return
        schema = self.chosen([*place, "content", next(iter(content)), "schema"], body)
        validator = OAS31Validator(
            schema, registry=self.registry, format_checker=oas31_format_checker
        )
        for error in validator.iter_errors(body):
            # Of a choice it is the choice that is told, and then what came closest to fitting.
            closest = best_match([error])
            yield f"{what}{pointer(error.absolute_path)}: {error.message}"
            if closest is not error:
                yield f"{what}{pointer(closest.absolute_path)}: {closest.message}"

    def chosen(self, place, body):
        """The schema at a place, or the one of its choices that the body says it is of."""
        schema = self.at(place)
        if "$ref" in schema:
            place = schema["$ref"][2:].split("/")
            schema = self.at(place)
        choice = schema.get("discriminator")
        if choice and isinstance(body, dict):
            chosen = choice["mapping"].get(body.get(choice["propertyName"]))
            if chosen:
                return {"$ref": HERE + chosen}
        return {"$ref": HERE + pointer(place)}


def close(schema):
    """Has every object have no other keys than those that are named."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            close(part)
    elif isinstance(schema, list):
        for part in schema:
            close(part)
    return schema


def pointer(path):
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "#" + "".join(f"/{part}" for part in parts)


def main():
    document = Document(json.loads(sys.stdin.readline()))
    exchanges = sys.stdin.readlines()
    if not exchanges:
        print(json.dumps(list(document.problems())))
    for exchange in exchanges:
        print(json.dumps(list(document.problems_of(json.loads(exchange)))))


main()
