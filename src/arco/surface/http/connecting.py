"""How each client is told where the catalog is: settings to copy, as text. What must never enter: a token's value."""

from dataclasses import dataclass

TOKEN_PLACE = "YOUR_TOKEN"  # noqa: S105 - the place where a token goes


@dataclass(frozen=True, slots=True)
class Place:
    """A catalog as a client reaches it."""

    uri: str
    warehouse: str
    root_kind: str
    wants_token: bool


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to copy, and where it goes."""

    client: str
    goes_to: str
    text: str


def recipes(place: Place) -> list[Recipe]:
    return [spark(place), pyiceberg(place), duckdb(place), trino(place), flink(place), datafusion(place), go(place)]


def spark(place: Place) -> Recipe:
    name = "spark.sql.catalog.arco"
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        name: "org.apache.iceberg.spark.SparkCatalog",
        f"{name}.type": "rest",
        f"{name}.uri": place.uri,
        f"{name}.warehouse": place.warehouse,
        **({f"{name}.token": TOKEN_PLACE} if place.wants_token else {}),
        "spark.sql.defaultCatalog": "arco",
    }
    lines = [
        "spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        *(f"  --conf {key}={value}" for key, value in settings.items()),
    ]
    return Recipe("Spark", "a shell; the same settings go into spark-defaults.conf", " \\\n".join(lines))


def pyiceberg(place: Place) -> Recipe:
    lines = [
        "from pyiceberg.catalog import load_catalog",
        "",
        *_catalog_in_python(place),
        "print(catalog.list_namespaces())",
    ]
    return Recipe("PyIceberg", "Python", "\n".join(lines))


def _catalog_in_python(place: Place) -> list[str]:
    arguments = {"uri": place.uri, "warehouse": place.warehouse, **({"token": TOKEN_PLACE} if place.wants_token else {})}
    return [
        'catalog = load_catalog("arco", type="rest",',
        *(f'    {key}="{value}",' for key, value in arguments.items()),
        ")",
    ]


def datafusion(place: Place) -> Recipe:
    lines = [
        "from datafusion import SessionContext",
        "from pyiceberg.catalog import load_catalog",
        "from pyiceberg.table import StaticTable",
        "",
        *_catalog_in_python(place),
        'table = catalog.load_table("NAMESPACE.TABLE")',
        "settings = {key: value for key, value in table.io.properties.items() if isinstance(value, str)}",
        "context = SessionContext()",
        'context.register_table("t", StaticTable.from_metadata(table.metadata_location, settings))',
        'context.sql("SELECT count(*) FROM t").show()',
    ]
    return Recipe("DataFusion", "Python, with PyIceberg and its pyiceberg-core", "\n".join(lines))


def duckdb(place: Place) -> Recipe:
    secret = [f"CREATE SECRET arco (TYPE iceberg, TOKEN '{TOKEN_PLACE}');"] if place.wants_token else []
    access = "SECRET arco" if place.wants_token else "AUTHORIZATION_TYPE 'none'"
    lines = [
        "INSTALL iceberg; LOAD iceberg;",
        *secret,
        f"ATTACH '{place.warehouse}' AS arco (TYPE iceberg,",
        f"    ENDPOINT '{place.uri}', {access});",
        "SHOW ALL TABLES;",
    ]
    return Recipe("DuckDB", "SQL", "\n".join(lines))


def trino(place: Place) -> Recipe:
    security = ["iceberg.rest-catalog.security=OAUTH2", f"iceberg.rest-catalog.oauth2.token={TOKEN_PLACE}"]
    storage = {
        "s3": ["fs.native-s3.enabled=true"],
        "gs": ["fs.native-gcs.enabled=true"],
        "az": ["fs.native-azure.enabled=true"],
    }
    lines = [
        "connector.name=iceberg",
        "iceberg.catalog.type=rest",
        f"iceberg.rest-catalog.uri={place.uri}",
        f"iceberg.rest-catalog.warehouse={place.warehouse}",
        *(security if place.wants_token else []),
        *storage.get(place.root_kind, ["# Trino reads buckets: it needs a root on s3://, gs:// or az://"]),
    ]
    return Recipe("Trino", "etc/catalog/arco.properties", "\n".join(lines))


def flink(place: Place) -> Recipe:
    options = {
        "type": "iceberg",
        "catalog-type": "rest",
        "uri": place.uri,
        "warehouse": place.warehouse,
        **({"token": TOKEN_PLACE} if place.wants_token else {}),
    }
    lines = ",\n".join(f"    '{key}' = '{value}'" for key, value in options.items())
    jars = "SQL, with the jars of iceberg-flink-runtime, hadoop-client-api and hadoop-client-runtime"
    return Recipe("Flink", jars, f"CREATE CATALOG arco WITH (\n{lines}\n);\nUSE CATALOG arco;")


def go(place: Place) -> Recipe:
    token = [f'    rest.WithOAuthToken("{TOKEN_PLACE}"),'] if place.wants_token else []
    lines = [
        'import "github.com/apache/iceberg-go/catalog/rest"',
        "",
        f'catalog, err := rest.NewCatalog(context.Background(), "arco", "{place.uri}",',
        *token,
        f'    rest.WithWarehouseLocation("{place.warehouse}"))',
    ]
    return Recipe("Go", "a program with github.com/apache/iceberg-go", "\n".join(lines))
