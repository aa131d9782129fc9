// SPDX-License-Identifier: Apache-2.0
package arco.conformance;

import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The kit's table tests with everything turned on that no property of the kit turns on. */
public class MoreCatalogTests extends RESTCompatibilityKitCatalogTests {
  private static final Namespace PARENT = Namespace.of("parent");

  /** The kit sweeps before each test, but does not know what its nested namespaces are called. */
  @BeforeEach
  void sweepNestedNamespaces() {
    if (catalog().namespaceExists(PARENT)) {
      catalog().listNamespaces(PARENT).forEach(catalog()::dropNamespace);
      catalog().dropNamespace(PARENT);
    }
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    return true;
  }

  @Override
  protected boolean supportsEmptyNamespace() {
    return true;
  }

  /** Disabled in the kit, because the reference server needs a setting of its own for it. */
  @Test
  @Override
  public void createTableInUniqueLocation() {
    super.createTableInUniqueLocation();
  }
}
