// SPDX-License-Identifier: Apache-2.0
package arco.conformance;

import org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests;

/** The kit's view tests with everything turned on that no property of the kit turns on. */
public class MoreViewTests extends RESTCompatibilityKitViewCatalogTests {
  @Override
  protected boolean supportsEmptyNamespace() {
    return true;
  }
}
