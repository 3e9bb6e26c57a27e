/** The ports of the mock, unless its environment names others. */
export const mockPorts = { execution: '4001', browserContext: '4002' }
