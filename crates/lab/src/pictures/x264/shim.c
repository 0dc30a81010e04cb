/* C interface to libx264 for Rust. The library's structs change between versions: the compiler
 * reads them here from the installed header, so that Rust does not depend on their layout. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <x264.h>

struct tautline_x264 {
	x264_t *encoder;
	x264_param_t params;
	int64_t next;
};

/* Opens a constrained-baseline encoder without delay. refresh_period: 0 for none, otherwise the
 * number of pictures in which a band of intra columns crosses. Returns NULL if x264 refuses. */
struct tautline_x264 *tautline_x264_open(const char *preset, int width, int height, int rate,
                                         int refresh_period, int cabac)
{
	struct tautline_x264 *shim = calloc(1, sizeof *shim);
	if (!shim)
		return NULL;
	x264_param_t *p = &shim->params;
	if (x264_param_default_preset(p, preset, "zerolatency") < 0) {
		free(shim);
		return NULL;
	}
	p->i_log_level = X264_LOG_NONE;
	p->i_width = width;
	p->i_height = height;
	p->i_csp = X264_CSP_I420;
	p->i_fps_num = rate;
	p->i_fps_den = 1;
	p->b_vfr_input = 0;
	p->i_threads = 1;
	p->b_sliced_threads = 0;
	p->i_frame_reference = 1;
	p->i_bframe = 0;
	p->i_scenecut_threshold = 0;
	p->b_intra_refresh = refresh_period > 0;
	p->i_keyint_max = refresh_period > 0 ? refresh_period : X264_KEYINT_MAX_INFINITE;
	p->b_cabac = cabac;
	p->b_annexb = 1;
	p->b_repeat_headers = 1;
	p->b_aud = 0;
	p->rc.i_rc_method = X264_RC_CQP;
	/* x264 clamps a picture's quantizer to the range between those of P and B pictures, derived
	 * from the constant and the factor: here 51 and 11. There are no B pictures. */
	p->rc.i_qp_constant = 51;
	p->rc.f_pb_factor = 0.01f;
	p->rc.f_ip_factor = 1.0f;
	p->rc.i_aq_mode = X264_AQ_NONE;
	p->rc.b_mb_tree = 0;
	p->rc.i_lookahead = 0;
	if (x264_param_apply_profile(p, cabac ? "main" : "baseline") < 0 ||
	    !(shim->encoder = x264_encoder_open(p))) {
		free(shim);
		return NULL;
	}
	return shim;
}

/* Codes one picture at a quantizer. Returns the number of bytes, which stay valid until the next
 * call, or a negative number on failure. */
int tautline_x264_encode(struct tautline_x264 *shim, const uint8_t *luma, const uint8_t *cb,
                         const uint8_t *cr, int qp, int idr, const uint8_t **bytes, int *is_idr)
{
	x264_picture_t in, out;
	x264_nal_t *nals;
	int count;
	x264_picture_init(&in);
	in.i_type = idr ? X264_TYPE_IDR : X264_TYPE_P;
	in.i_qpplus1 = qp + 1;
	in.i_pts = shim->next++;
	in.img.i_csp = X264_CSP_I420;
	in.img.i_plane = 3;
	in.img.i_stride[0] = shim->params.i_width;
	in.img.i_stride[1] = in.img.i_stride[2] = shim->params.i_width / 2;
	/* x264 copies the planes and does not write to them. */
	in.img.plane[0] = (uint8_t *)luma;
	in.img.plane[1] = (uint8_t *)cb;
	in.img.plane[2] = (uint8_t *)cr;
	int length = x264_encoder_encode(shim->encoder, &nals, &count, &in, &out);
	if (length <= 0)
		return length < 0 ? length : -1;
	*bytes = nals[0].p_payload;
	*is_idr = out.i_type == X264_TYPE_IDR;
	return length;
}

void tautline_x264_close(struct tautline_x264 *shim)
{
	x264_encoder_close(shim->encoder);
	free(shim);
}
