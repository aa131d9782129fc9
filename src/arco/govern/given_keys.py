"""Credentials that are passed through: the keys that the server itself was given, for who declares that clients may have them.

They reach whatever the server reaches, and do not end. For stores without a token service, on networks of one's own.
"""

from collections.abc import Mapping

from arco.govern.places import ValidatedPlace
from arco.govern.vending import Access, Credential
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.secret import Secret


class GivenKeys:
    """A vendor that has made up its mind: the same properties for every table."""

    refresh_property = None
    lasting_mark: str

    def __init__(self, properties: Mapping[str, Secret]) -> None:
        if not properties:
            raise InvalidInput("there are no keys to pass on", hint="give them as options: -o access_key_id=… and so on")
        self._properties = dict(properties)
        texts = [text for word in sorted(properties) for text in (word, properties[word].reveal())]
        self.lasting_mark = fingerprint("keys that are passed on", *texts)[:16]

    async def vend(self, place: ValidatedPlace, access: Access) -> Credential:
        if access is Access.READ:
            raise InvalidInput("keys that are passed on cannot be held to reading")
        return Credential(f"{place.uri}/", self._properties, {}, None, self.lasting_mark)
