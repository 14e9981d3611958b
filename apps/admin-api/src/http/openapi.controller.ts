import { Controller, Get, Header } from '@nestjs/common';
import { adminOpenApiDocument } from '@weir/domain';

@Controller()
export class OpenApiController {
  private readonly document = adminOpenApiDocument();

  @Get('api/openapi.json')
  @Header('cache-control', 'public, max-age=300')
  openApi(): Record<string, unknown> {
    return this.document;
  }
}
