"""How the tests start Java: soon there, never fast. The archive of classes that they use is made likewise.

The first compiler alone has 48 MB for its code where both have 240 MB. A session of many tests fills those, and from then on
Java compiles nothing and interprets everything.
"""

QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
