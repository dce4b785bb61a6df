"""Streams that break load-testing tools, byte for byte: ``STREAMS[id]`` = [(arrival ms, bytes of one segment)].

Times count from the moment the request was sent. Bytes are the body after chunked decoding, unless
RAW stands in the id: then the HTTP head is part of them. ``b"<FIN>"`` closes the connection.
"""

STREAMS: dict[str, list[tuple[int, bytes]]] = {
    'A01/V1 content empty': [
        (20, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'),
        (220, b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'),
        (260, b'data: {"choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}]}\n\n'),
        (300, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A01/V2 content null': [
        (20, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}\n\n'),
        (220, b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'),
        (260, b'data: {"choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}]}\n\n'),
        (300, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A02/V1 DONE only': [
        (30, b'data: [DONE]\n\n'),
    ],
    'A02/V2 role + stop': [
        (30, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'),
        (60, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A02/V3 server says one token (EOS only)': [
        (30, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'),
        (140, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
        (141, b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}\n\ndata: [DONE]\n\n'),
    ],
    'A03/V1 `reasoning`': [
        (20, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{"reasoning":"Well"},"finish_reason":null}]}\n\n'),
        (160, b'data: {"choices":[{"index":0,"delta":{"reasoning":", so"},"finish_reason":null}]}\n\n'),
        (900, b'data: {"choices":[{"index":0,"delta":{"content":"\\n\\n"},"finish_reason":null}]}\n\n'),
        (940, b'data: {"choices":[{"index":0,"delta":{"content":"42"},"finish_reason":null}]}\n\n'),
        (960, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
        (980, b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":3}}}\n\ndata: [DONE]\n\n'),
    ],
    'A03/V2 `reasoning_content`': [
        (120, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"Well"},"finish_reason":null}]}\n\n'),
        (900, b'data: {"choices":[{"index":0,"delta":{"content":"No"},"finish_reason":null}]}\n\n'),
        (940, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A03/V3 both keys, content empty': [
        (120, b'data: {"choices":[{"index":0,"delta":{"content":"","reasoning":" help"},"finish_reason":null}]}\n\n'),
        (150, b'data: {"choices":[{"index":0,"delta":{"content":"","reasoning":"."},"finish_reason":null}]}\n\n'),
        (400, b'data: {"choices":[{"index":0,"delta":{"content":"Yes","reasoning":null},"finish_reason":null}]}\n\n'),
        (410, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A03/V4 reasoning_details': [
        (50, b'data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"aGk="}]},"finish_reason":null}]}\n\n'),
        (130, b'data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"Let"}]},"finish_reason":null}]}\n\n'),
        (500, b'data: {"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}]}\n\n'),
        (510, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A03/V5 one chunk holds both': [
        (100, b'data: {"choices":[{"index":0,"delta":{"reasoning":"x"},"finish_reason":null}]}\n\n'),
        (200, b'data: {"choices":[{"index":0,"delta":{"reasoning":" end","content":"Go"},"finish_reason":null}]}\n\n'),
        (240, b'data: {"choices":[{"index":0,"delta":{"content":"!"},"finish_reason":null}]}\n\n'),
        (250, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A05/V1': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (150, b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}\n\n'),
        (200, b'data: {"choices":[{"index":0,"delta":{"content":"c"},"finish_reason":null}]}\n\n'),
        (205, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
        (700, b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}\n\n'),
        (701, b'data: [DONE]\n\n'),
    ],
    'A06/V1 cumulative 1,4,5': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}\n\n'),
        (160, b'data: {"choices":[{"index":0,"delta":{"content":"bcd"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}\n\n'),
        (180, b'data: {"choices":[{"index":0,"delta":{"content":"e"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n'),
        (184, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n'),
        (185, b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\ndata: [DONE]\n\n'),
    ],
    'A06/V2 constant 5 everywhere': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n'),
        (160, b'data: {"choices":[{"index":0,"delta":{"content":"bcd"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n'),
        (180, b'data: {"choices":[{"index":0,"delta":{"content":"e"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n'),
        (185, b'data: [DONE]\n\n'),
    ],
    'A06/V3 usage:null until the end': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null}\n\n'),
        (180, b'data: {"choices":[{"index":0,"delta":{"content":"e"},"finish_reason":"stop"}],"usage":null}\n\n'),
        (185, b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}\n\ndata: [DONE]\n\n'),
    ],
    'A09/V1': [
        (60, b'data: {"id":"","object":"","created":0,"model":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}],"choices":[],"usage":null}\n\n'),
        (150, b'data: {"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}\n\n'),
        (400, b'data: {"choices":[{"index":0,"delta":{"content":"Ok"},"finish_reason":null}]}\n\n'),
        (450, b'data: {"choices":[{"index":0,"delta":{"content":"."},"finish_reason":null}]}\n\n'),
        (500, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
        (620, b'data: {"id":"","object":"","created":0,"model":"","choices":[{"finish_reason":null,"index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"content_filter_offsets":{"check_offset":44,"start_offset":44,"end_offset":47}}]}\n\n'),
        (621, b'data: [DONE]\n\n'),
    ],
    'A10/clean end of body at 130': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}\n\n'),
        (125, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
    ],
    'A11/proper zero chunk at 160': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (150, b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}\n\n'),
    ],
    'A12/V1 RAW no zero chunk, FIN': [
        (0, b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'),
        (100, b'4e\r\ndata: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n\r\n'),
        (200, b'<FIN>'),
    ],
    'A12/V2 RAW cut inside a chunk': [
        (0, b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n40\r\ndata: {"choi'),
        (200, b'<FIN>'),
    ],
    'A12/V3 RAW Content-Length 50 too long': [
        (0, b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 128\r\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (200, b'<FIN>'),
    ],
    'A14/V1 before the first token': [
        (10, b': OPENROUTER PROCESSING\n\n'),
        (1010, b': OPENROUTER PROCESSING\n\n'),
        (1500, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (1530, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A14/V2 comments glued to [DONE]': [
        (10, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (20, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
        (30, b': x-tokens-out=1\n: x-cost=0.0001\ndata: [DONE]\n\n'),
    ],
    'A14/V3 empty data lines': [
        (10, b'data:\n\n'),
        (12, b'data: \n\n'),
        (40, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (50, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A14/V4 comment wrapped as data (broken gateway)': [
        (10, b'data: : OPENROUTER PROCESSING\n\n'),
        (40, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (50, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A15/V1': [
        (80, b'data:{"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'),
        (120, b'data:{"choices":[{"index":0,"delta":{"content":" a"}}]}\n\n'),
        (160, b'data:{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}\n\ndata:[DONE]\n\n'),
    ],
    'A16/V1 CRLF split inside a multi-line event': [
        (10, b'event: message\r'),
        (20, b'\ndata: {"choices":[{"index":0,\r'),
        (30, b'\ndata: "delta":{"content":"a"}}]}\r'),
        (40, b'\n\r'),
        (50, b'\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\r\n\r\ndata: [DONE]\r\n\r\n'),
    ],
    'A16/V2 bare CR': [
        (10, b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\r\r'),
        (20, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\r\rdata: [DONE]\r\r'),
    ],
    'A16/V3 mixed': [
        (10, b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\r\n'),
        (20, b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}\r\n\n'),
        (30, b'data: [DONE]\n\n'),
    ],
    'A18/V1 3-byte char': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"\xe8'),
        (130, b'\xaa\x9e"}}]}\n\n'),
        (150, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A18/V2 4-byte emoji, one byte per segment': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"\xf0'),
        (130, b'\x9f'),
        (160, b'\x9a'),
        (190, b'\x80"}}]}\n'),
        (200, b'\n'),
        (220, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A21/header: Content-Type: text/event-stream': [
        (10, b'data: {"choices":[{"index":0,"delta":{"content":"\xe5\x9b\xbd\xe5\x86\x85 \xc3\x85"}}]}\n\n'),
        (20, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A23/V1': [
        (30, b'event: message_start\ndata: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":31,"output_tokens":3}}}\n\n'),
        (35, b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'),
        (40, b'event: ping\ndata: {"type":"ping"}\n\n'),
        (210, b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good"}}\n\n'),
        (260, b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" day"}}\n\n'),
        (265, b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'),
        (270, b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":19}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'),
    ],
    'A23/V2 two message_delta': [
        (30, b'event: message_start\ndata: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":31,"output_tokens":3}}}\n\n'),
        (35, b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'),
        (210, b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good"}}\n\n'),
        (260, b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" day"}}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'),
        (265, b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":19}}\n\n'),
        (270, b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":31}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'),
    ],
    'A25/V1 completed': [
        (20, b'event: response.created\ndata: {"type":"response.created","response":{"status":"in_progress"}}\n\n'),
        (25, b'event: response.output_item.added\ndata: {"type":"response.output_item.added","output_index":0}\n\n'),
        (200, b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi","output_index":0}\n\n'),
        (240, b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":" you","output_index":0}\n\n'),
        (245, b'event: response.output_text.done\ndata: {"type":"response.output_text.done","text":"Hi you","output_index":0}\n\n'),
        (250, b'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"output_tokens":2}}}\n\n'),
    ],
    'A25/V2 incomplete': [
        (200, b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n'),
        (240, b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":" you"}\n\n'),
        (250, b'event: response.incomplete\ndata: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":9,"output_tokens":2}}}\n\n'),
    ],
    'A25/V3 failed': [
        (200, b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n'),
        (250, b'event: response.failed\ndata: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}\n\n'),
    ],
    'A25/V4 EOF after deltas': [
        (200, b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n'),
    ],
    'A26/V1 before any token': [
        (40, b'data: {"error":{"message":"engine died","type":"InternalServerError","param":null,"code":500}}\n\ndata: [DONE]\n\n'),
    ],
    'A26/V2 after two tokens': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}\n\n'),
        (130, b'data: {"error":{"message":"engine died","code":500}}\n\ndata: [DONE]\n\n'),
    ],
    'A26/V3 error + choices with finish_reason error': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (150, b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"upstream gone"}}\n\n'),
    ],
    'A26/V4 string form (TGI)': [
        (40, b'data:{"error":"worker lost","error_type":"generation"}\n\n'),
    ],
    'A26/V5 error: null is not an error': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"error":null}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"error":null}\n\ndata: [DONE]\n\n'),
    ],
    'A28/V1 abort': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"abort"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A28/V2 content_filter': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A28/V3 length': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A28/V4 unknown value': [
        (100, b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'),
        (120, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"eos_token_x"}]}\n\ndata: [DONE]\n\n'),
    ],
    'A29/V1': [
        (20, b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}\n\n'),
        (180, b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"get_time","arguments":""},"id":"call_1","type":"function"}]},"finish_reason":null}]}\n\n'),
        (220, b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"tz\\":"}}]},"finish_reason":null}]}\n\n'),
        (260, b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"Oslo\\"}"}}]},"finish_reason":null}]}\n\n'),
        (280, b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'),
        (281, b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":17,"total_tokens":24}}\n\ndata: [DONE]\n\n'),
    ],
    'A31/V1 with continuous usage': [
        (500, b'data: {"choices":[{"index":0,"delta":{"content":"eight tokens here"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":8,"total_tokens":15}}\n\n'),
        (580, b'data: {"choices":[{"index":0,"delta":{"content":" four more"},"finish_reason":null}],"usage":{"prompt_tokens":7,"completion_tokens":12,"total_tokens":19}}\n\n'),
        (660, b'data: {"choices":[{"index":0,"delta":{"content":" last four"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":16,"total_tokens":23}}\n\n'),
        (661, b'data: [DONE]\n\n'),
    ],
    'A31/V2 same times, only final usage': [
        (500, b'data: {"choices":[{"index":0,"delta":{"content":"eight tokens here"},"finish_reason":null}]}\n\n'),
        (580, b'data: {"choices":[{"index":0,"delta":{"content":" four more"},"finish_reason":null}]}\n\n'),
        (660, b'data: {"choices":[{"index":0,"delta":{"content":" last four"},"finish_reason":"stop"}]}\n\n'),
        (661, b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":16,"total_tokens":23}}\n\ndata: [DONE]\n\n'),
    ],
    'A33/V1': [
        (80, b'data: {"text":"He","meta_info":{"id":"r","prompt_tokens":4,"completion_tokens":1,"finish_reason":null}}\n\n'),
        (100, b'data: {"text":"Hello","meta_info":{"id":"r","prompt_tokens":4,"completion_tokens":2,"finish_reason":null}}\n\n'),
        (120, b'data: {"text":"Hello","meta_info":{"id":"r","prompt_tokens":4,"completion_tokens":3,"finish_reason":null}}\n\n'),
        (140, b'data: {"text":"Hello\xf0\x9f\x99\x82","meta_info":{"id":"r","prompt_tokens":4,"completion_tokens":5,"finish_reason":{"type":"stop","matched":2}}}\n\ndata: [DONE]\n\n'),
    ],
    'A33/V2 abort': [
        (80, b'data: {"text":"He","meta_info":{"completion_tokens":1,"finish_reason":null}}\n\n'),
        (90, b'data: {"text":"He","meta_info":{"completion_tokens":1,"finish_reason":{"type":"abort","message":"too long","status_code":400}}}\n\ndata: [DONE]\n\n'),
    ],
    'A34/V1': [
        (50, b'data:{"index":1,"token":{"id":10,"text":"Hi","logprob":-0.1,"special":false},"generated_text":null,"details":null}\n\n'),
        (90, b'data:{"index":2,"token":{"id":2,"text":"</s>","logprob":0.0,"special":true},"generated_text":"Hi","details":{"finish_reason":"eos_token","generated_tokens":2,"seed":null}}\n\n'),
    ],
    'A34/V2 non-stream body from the same server': [
        (90, b'{"generated_text":"Hi"}'),
    ],
    'A35/V1': [
        (60, b'{"model":"m","message":{"role":"assistant","content":"a"},"done":false}\n{"model":"m","message":{"role":"assist'),
        (90, b'ant","content":"b"},"done":false}\n'),
        (120, b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":3,"eval_duration":60000000}\n'),
    ],
    'A35/V2 error line at 200': [
        (60, b'{"model":"m","message":{"role":"assistant","content":"a"},"done":false}\n'),
        (80, b'{"error":"runner gone"}\n'),
    ],
    'A35/V3 last line without LF': [
        (60, b'{"response":"a","done":false}\n'),
        (80, b'{"response":"","done":true,"eval_count":1}'),
    ],
    'A37/Content-Encoding: gzip, sync-flushed per event': [
        (100, b'\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x0c\xc91\n\xc0 \x0c\x05\xd0\xddS\x94?;t\xceU\x8a\x94\xa0)\x06$BM\xa1 \xde\xbd}\xeb+\xecL\xdbD\xae]\xb3\x0c\xd01\xa1V\xe4\x05\xed\x11E\x9a3\xe8\xefn.\xe6 0V\xc4\xa5\xa6\xa3\x9e\xb7\xf0\xe8\x06\xb2\xa7\xb5\x95V\x08\x1f\x00\x00\x00\xff\xff'),
        (150, b'J!\xd5\xb4$|\xa6\x01\x00\x00\x00\xff\xff'),
        (200, b'#\xce4L\x03\x94\x8aK\xf2\x0b\x94\x90\x8c\x88v\xf1\xf7s\x8d\xe5\xe2\x02\x00\x06.\xcd\x08\xed\x00\x00\x00'),
    ],
    'A39/then `: keep-alive` every 10 s for ever': [
        (100, b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"a"},"finish_reason":null}]}\n\n'),
        (10100, b': keep-alive\n\n'),
        (20100, b': keep-alive\n\n'),
    ],
    'A40/V1 RAW': [
        (12, b'HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 2\r\nContent-Length: 45\r\n\r\n{"error":{"message":"slow","code":"rate_l"}} '),
    ],
    'A40/V2 RAW': [
        (12, b'HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nContent-Length: 26\r\n\r\n<html><h1>503</h1></html>\n'),
    ],
    'A40/V3 RAW 200 with HTML (login page)': [
        (12, b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20\r\n\r\n<html>Sign in</html>'),
    ],
}
