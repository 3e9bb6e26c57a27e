/** The ports of a simulator that runs as a command: those of the mock, and two more. */
export const simulatorPorts = {
  DASHBOARD_PORT: { variable: 'MOCK_DASHBOARD_PORT', port: '4000' },
  EXECUTION_PORT: { variable: 'MOCK_EXECUTION_PORT', port: '4001' },
  BROWSER_CONTEXT_PORT: { variable: 'MOCK_BROWSER_CONTEXT_PORT', port: '4002' },
  MANAGEMENT_PORT: { variable: 'MOCK_MANAGEMENT_PORT', port: '4003' },
} as const
