import ExcelJS from 'exceljs'
import { use } from '../lib/use.mjs'

export default use('exceljs', 'writes a workbook, and reads it', 7, async () => {
  const written = new ExcelJS.Workbook()
  written.addWorksheet('Orders').addRow(['Ada', 7])
  const read = new ExcelJS.Workbook()
  await read.xlsx.load(await written.xlsx.writeBuffer())
  return read.getWorksheet('Orders').getCell('B1').value
})
